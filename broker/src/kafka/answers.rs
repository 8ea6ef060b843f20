//! What a connection owes: answers, each in the words of its request, in the order of the requests.

use std::cell::RefCell;

use tackboard_logic::request::in_order::InOrder;
use tackboard_schema::{
    CorrelationId,
    kafka::{ApiKey, Response, encode_response},
};

use crate::native::connection::{Connection, OutFrame};

/// What is needed to answer a request.
pub struct Asked {
    /// The API.
    pub api: ApiKey,
    /// In which words.
    pub version: i16,
    /// What the client calls it.
    pub correlation_id: i32,
    /// What else.
    pub form: Form,
}

/// What an API needs to know of a request until it is answered.
pub enum Form {
    /// Nothing.
    Plain,
    /// A produce request of a client that waits for no answer.
    Silent,
    /// A fetch whose client names topics by their ids: these in its order, and how many partitions of each it names.
    TopicIds(Vec<(tackboard_schema::TopicId, usize)>),
    /// Topics that are changed one by one.
    Changes(super::changes::Changes),
    /// Questions to coordinators of groups.
    Groups(super::groups::Named),
}

/// The answers that a connection owes.
#[derive(Default)]
pub struct Answers {
    owed: RefCell<InOrder<Asked, Option<OutFrame>>>,
}

impl Answers {
    /// Takes a request in. The number stands for it until it is answered.
    pub fn ask(&self, asked: Asked) -> CorrelationId {
        CorrelationId(self.owed.borrow_mut().ask(asked))
    }

    /// Looks at what was asked; `None`: it is answered already.
    pub fn with<R>(&self, number: CorrelationId, look: impl FnOnce(&mut Asked) -> R) -> Option<R> {
        self.owed.borrow_mut().question(number.0).map(look)
    }

    /// Answers a request without records of a log.
    pub fn respond<R: Response>(
        &self,
        connection: &Connection,
        number: CorrelationId,
        response: &R,
    ) {
        let Some((version, correlation_id)) =
            self.with(number, |asked| (asked.version, asked.correlation_id))
        else {
            return;
        };
        let mut frame = OutFrame {
            answers: 1,
            ..OutFrame::default()
        };
        if let Err(error) = encode_response(&mut frame.head, version, correlation_id, response) {
            // Without an answer the client would wait, and every later answer with it.
            tracing::error!(%error, api = %R::API, version, "an answer could not be written; connection closed");
            return connection.close();
        }
        frame.length = frame.head.len();
        self.send(connection, number, Some(frame));
    }

    /// Answers a request with a frame, or with none. What waited for it goes out as well.
    pub fn send(
        &self,
        connection: &Connection,
        number: CorrelationId,
        mut frame: Option<OutFrame>,
    ) {
        let mut owed = self.owed.borrow_mut();
        if owed.question(number.0).is_none() {
            return;
        }
        if let Some(frame) = &mut frame {
            // It takes memory from now on, whenever its turn to be sent comes.
            connection.answer_known(frame);
        }
        owed.answer(number.0, frame);
        while let Some(frame) = owed.next_due() {
            match frame {
                Some(frame) => connection.send_known(frame),
                None => connection.release_request(),
            }
        }
    }
}
