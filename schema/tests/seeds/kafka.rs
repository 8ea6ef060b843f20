//! Seeds of Kafka's messages: of every API a request and a response in its last version and, where it is another, its
//! first.

use tackboard_schema::kafka::{self, *};

use crate::kafka_messages::{Extent, Invent, Inventor, for_every_api};

/// Name and bytes of every seed.
pub fn seeds() -> Vec<(String, Vec<u8>)> {
    let mut seeds = Vec::new();
    let mut put = |api: ApiKey, version: i16, part: &str, body: &[u8]| {
        let row = api.row();
        let index = API_TABLE.iter().position(|other| other == row).unwrap() as u8;
        let version_index = (version - row.served.min) as u8;
        let is_response = u8::from(part == "response");
        let bytes = [&[index, version_index, is_response], body].concat();
        seeds.push((format!("seed-{}-{part}-{version}", row.name), bytes));
    };
    macro_rules! put_all {
        ($($name:ident, $request:ident, $response:ident;)*) => {
            $({
                let served = ApiKey::$name.row().served;
                let mut versions = vec![served.min, served.max];
                versions.dedup();
                for version in versions {
                    put(ApiKey::$name, version, "request", &request::<$request>(version));
                    put(ApiKey::$name, version, "response", &response::<$response>(version));
                }
            })*
        };
    }
    for_every_api!(put_all);
    seeds
}

fn request<R: kafka::Request + Invent>(version: i16) -> Vec<u8> {
    let request: R = Inventor::new(version, Extent::Most, 1).value();
    let header = 10 + usize::from(R::API.row().is_flexible(version));
    let mut frame = Vec::new();
    encode_request(&mut frame, version, 1, None, &request).unwrap();
    frame.split_off(LENGTH_PREFIX_BYTES + header)
}

fn response<R: kafka::Response + Invent>(version: i16) -> Vec<u8> {
    let response: R = Inventor::new(version, Extent::Most, 1).value();
    let mut frame = Vec::new();
    encode_response(&mut frame, version, 1, &response).unwrap();
    frame.split_off(LENGTH_PREFIX_BYTES + 4)
}
