//! Messages byte by byte, written down from Kafka's protocol guide, and what the oracle can't show: gaps, defaults of
//! old versions, what can't be written.

use bytes::Bytes;
use tackboard_schema::TopicId;
use tackboard_schema::kafka::*;

/// A frame with its length before it, from pieces of bytes.
fn frame(pieces: &[&[u8]]) -> Vec<u8> {
    let body = pieces.concat();
    [&(body.len() as u32).to_be_bytes()[..], &body].concat()
}

fn assert_request<R: Request + PartialEq + std::fmt::Debug>(
    version: i16,
    client_id: Option<&'static str>,
    request: &R,
    expected: &[u8],
) {
    let client_id = client_id.map(Str::from_static);
    let mut written = Vec::new();
    encode_request(
        &mut written,
        version,
        0x0102_0304,
        client_id.as_ref(),
        request,
    )
    .unwrap();
    assert_eq!(written, expected);
    let opened = RequestFrame::open(Bytes::from(written.split_off(4))).unwrap();
    assert_eq!(
        (opened.version, opened.correlation_id),
        (version, 0x0102_0304)
    );
    assert_eq!(opened.client_id, client_id);
    assert_eq!(opened.body::<R>().as_ref(), Ok(request));
}

fn assert_response<R: Response + PartialEq + std::fmt::Debug>(
    version: i16,
    response: &R,
    expected: &[u8],
) {
    let mut written = Vec::new();
    assert_eq!(
        encode_response(&mut written, version, 0x0102_0304, response),
        Ok(Vec::new())
    );
    assert_eq!(written, expected);
    let read = decode_response::<R>(Bytes::from(written.split_off(4)), version);
    assert_eq!(read.as_ref(), Ok(response));
}

const CORRELATION_ID: &[u8] = &[1, 2, 3, 4];

#[test]
fn api_versions() {
    let request = ApiVersionsRequest::default();
    let header: &[u8] = &[0, 18, 0, 0];
    assert_request(
        0,
        None,
        &request,
        &frame(&[header, CORRELATION_ID, &[0xff, 0xff]]),
    );

    let request = ApiVersionsRequest {
        client_software_name: "kit".into(),
        client_software_version: "1.0".into(),
    };
    let expected = frame(&[
        &[0, 18, 0, 3],
        CORRELATION_ID,
        b"\0\x02me", // the client's id never has a compact length
        &[0],        // tagged fields of the header
        b"\x04kit\x041.0",
        &[0],
    ]);
    assert_request(3, Some("me"), &request, &expected);

    // The header of the answer has no tagged fields.
    let response = ApiVersionsResponse {
        api_keys: vec![ApiVersionsResponseApiVersion {
            api_key: 1,
            min_version: 4,
            max_version: 12,
        }],
        ..Default::default()
    };
    let key: &[u8] = &[0, 1, 0, 4, 0, 12];
    let expected = frame(&[
        CORRELATION_ID,
        &[0, 0],
        &[2],
        key,
        &[0],
        &[0, 0, 0, 0],
        &[0],
    ]);
    assert_response(3, &response, &expected);

    let expected = frame(&[
        CORRELATION_ID,
        &[0, 35],
        &[0, 0, 0, 1],
        &[0, 18, 0, 0, 0, 4],
    ]);
    assert_response(0, &unsupported_api_versions(), &expected);
}

#[test]
fn an_unsupported_version_is_told_with_what_an_answer_needs() {
    let open = |bytes: &[u8]| RequestFrame::open(Bytes::copy_from_slice(bytes)).unwrap_err();
    // The rest of the header is of a form that nobody knows yet.
    assert_eq!(
        open(&[0, 18, 0, 99, 1, 2, 3, 4, 0xaa]),
        RequestFault::UnsupportedVersion {
            api: ApiKey::ApiVersions,
            version: 99,
            correlation_id: 0x0102_0304
        }
    );
    let fault = open(&[0, 0, 0, 2, 1, 2, 3, 4, 0xff, 0xff]);
    assert_eq!(
        fault.to_string(),
        "Produce is served in versions 3-11, not in 2"
    );
    let fault = open(&[0, 17, 0, 0, 1, 2, 3, 4, 0xff, 0xff]);
    assert_eq!(fault, RequestFault::UnknownApi { key: 17 });
    assert_eq!(
        open(&[0, 18, 0]).to_string(),
        "a message ends early at byte 2 (api_version: 2 bytes wanted, 1 left)"
    );
}

#[test]
fn every_advertised_api_is_named_once() {
    let response = tackboard_schema::kafka::api_versions();
    assert_eq!(response.error_code, 0);
    let keys: Vec<_> = (response.api_keys.iter())
        .map(|key| (key.api_key, key.min_version, key.max_version))
        .collect();
    assert_eq!(keys.len(), API_TABLE.len());
    for row in [(0, 0, 11), (1, 4, 17), (18, 0, 4)] {
        assert!(keys.contains(&row), "{row:?}");
    }
}

#[test]
fn metadata() {
    // All topics: null from version 1 on, empty before.
    let all = MetadataRequest {
        topics: None,
        ..Default::default()
    };
    let expected = frame(&[&[0, 3, 0, 1], CORRELATION_ID, &[0xff, 0xff], &[0xff; 4]]);
    assert_request(1, None, &all, &expected);
    let mut written = Vec::new();
    encode_request(&mut written, 0, 0x0102_0304, None, &all).unwrap();
    assert_eq!(
        written,
        frame(&[&[0, 3, 0, 0], CORRELATION_ID, &[0xff, 0xff], &[0; 4]])
    );

    let one = |topic_id| MetadataRequest {
        topics: Some(vec![MetadataRequestTopic {
            topic_id,
            name: Some("t".into()),
        }]),
        allow_auto_topic_creation: false,
        ..Default::default()
    };
    let expected = frame(&[
        &[0, 3, 0, 12],
        CORRELATION_ID,
        &[0xff, 0xff],
        &[0],
        &[2],     // one topic
        &[9; 16], // its id
        b"\x02t",
        &[0], // tagged fields of the topic
        &[0], // no creation
        &[0], // no operations
        &[0], // tagged fields of the request
    ]);
    assert_request(12, None, &one(TopicId([9; 16])), &expected);

    let response = MetadataResponse {
        brokers: vec![MetadataResponseBroker {
            node_id: 1,
            host: "h".into(),
            port: 9092,
            rack: None,
        }],
        cluster_id: Some("c".into()),
        controller_id: 1,
        topics: vec![MetadataResponseTopic {
            name: Some("t".into()),
            partitions: vec![MetadataResponsePartition {
                leader_id: 1,
                leader_epoch: 5,
                replica_nodes: vec![1],
                isr_nodes: vec![1],
                ..Default::default()
            }],
            ..Default::default()
        }],
        ..Default::default()
    };
    let expected = frame(&[
        CORRELATION_ID,
        &[0, 0, 0, 0], // throttle time
        &[
            0, 0, 0, 1, 0, 0, 0, 1, 0, 1, b'h', 0, 0, 0x23, 0x84, 0xff, 0xff,
        ], // the broker, no rack
        &[0, 1, b'c', 0, 0, 0, 1], // cluster, controller
        &[0, 0, 0, 1, 0, 0, 0, 1, b't', 0], // a topic, not internal
        &[0, 0, 0, 1, 0, 0, 0, 0, 0, 0], // partition 0
        &[0, 0, 0, 1, 0, 0, 0, 5], // leader, epoch
        &[0, 0, 0, 1, 0, 0, 0, 1], // replicas
        &[0, 0, 0, 1, 0, 0, 0, 1], // in sync
        &[0, 0, 0, 0], // offline
    ]);
    assert_response(7, &response, &expected);
}

#[test]
fn produce_leaves_records_where_they_are() {
    let records = Bytes::from_static(b"a batch");
    let request = ProduceRequest {
        acks: -1,
        timeout_ms: 1000,
        topic_data: vec![ProduceRequestTopic {
            name: "t".into(),
            partition_data: vec![ProduceRequestPartition {
                index: 3,
                records: Some(Records::Here(records)),
            }],
        }],
        ..Default::default()
    };
    let expected = frame(&[
        &[0, 0, 0, 3],
        CORRELATION_ID,
        &[0xff, 0xff],
        &[0xff, 0xff], // no transaction
        &[0xff, 0xff, 0, 0, 3, 0xe8],
        &[0, 0, 0, 1, 0, 1, b't'],
        &[0, 0, 0, 1, 0, 0, 0, 3],
        b"\0\0\0\x07a batch",
    ]);
    assert_request(3, None, &request, &expected);
    let expected = frame(&[
        &[0, 0, 0, 9],
        CORRELATION_ID,
        &[0xff, 0xff],
        &[0],
        &[0], // no transaction
        &[0xff, 0xff, 0, 0, 3, 0xe8],
        &[2, 2, b't'],
        &[2, 0, 0, 0, 3],
        b"\x08a batch",
        &[0, 0, 0], // tagged fields of partition, topic and request
    ]);
    assert_request(9, None, &request, &expected);

    let frame = Bytes::from(expected);
    let read: ProduceRequest = RequestFrame::open(frame.slice(4..))
        .unwrap()
        .body()
        .unwrap();
    let records = read.topic_data[0].partition_data[0]
        .records
        .as_ref()
        .unwrap();
    let at = records.bytes().unwrap().as_ptr() as usize - frame.as_ptr() as usize;
    assert_eq!(&frame[at..at + 7], b"a batch");
    let name = read.topic_data[0].name.as_ptr();
    assert!(frame.as_ptr_range().contains(&name));
    let own = read.topic_data[0].name.detached();
    assert!(own == "t" && !frame.as_ptr_range().contains(&own.as_ptr()));
}

#[test]
fn find_coordinator_and_producer_ids() {
    let request = FindCoordinatorRequest {
        key: "g".into(),
        ..Default::default()
    };
    let expected = frame(&[&[0, 10, 0, 0], CORRELATION_ID, &[0xff, 0xff], b"\0\x01g"]);
    assert_request(0, None, &request, &expected);

    let response = InitProducerIdResponse {
        producer_id: 258,
        producer_epoch: 1,
        ..Default::default()
    };
    let expected = frame(&[
        CORRELATION_ID,
        &[0], // tagged fields of the header
        &[0, 0, 0, 0, 0, 0],
        &[0, 0, 0, 0, 0, 0, 1, 2, 0, 1],
        &[0],
    ]);
    assert_response(4, &response, &expected);
}

#[test]
fn a_field_that_a_version_lacks_has_its_default() {
    let mut written = Vec::new();
    let request = InitProducerIdRequest {
        producer_id: 7,
        producer_epoch: 7,
        ..Default::default()
    };
    encode_request(&mut written, 2, 1, None, &request).unwrap();
    let opened = RequestFrame::open(Bytes::from(written.split_off(4))).unwrap();
    let read: InitProducerIdRequest = opened.body().unwrap();
    assert_eq!((read.producer_id, read.producer_epoch), (-1, -1));

    let response = FetchResponse {
        responses: vec![FetchResponseTopic {
            partitions: vec![FetchResponsePartition {
                preferred_read_replica: 4,
                log_start_offset: 4,
                ..Default::default()
            }],
            ..Default::default()
        }],
        ..Default::default()
    };
    let mut written = Vec::new();
    encode_response(&mut written, 4, 1, &response).unwrap();
    let read: FetchResponse = decode_response(Bytes::from(written.split_off(4)), 4).unwrap();
    let partition = &read.responses[0].partitions[0];
    assert_eq!(
        (partition.preferred_read_replica, partition.log_start_offset),
        (-1, -1)
    );
    assert_eq!(
        partition.records,
        Some(Records::default()),
        "empty, never null"
    );
    let described = DescribeGroupsResponseGroup::default();
    assert_eq!(described.authorized_operations, i32::MIN);
}

#[test]
fn records_that_are_elsewhere_are_gaps_in_the_frame() {
    let texts: [&[u8]; 4] = [b"first", b"", b"the third", b"4"];
    let response = |records: fn(&'static [u8]) -> Records| FetchResponse {
        responses: texts
            .chunks(2)
            .map(|texts| FetchResponseTopic {
                topic: "t".into(),
                partitions: (texts.iter())
                    .map(|text| FetchResponsePartition {
                        records: Some(records(text)),
                        ..Default::default()
                    })
                    .collect(),
                ..Default::default()
            })
            .collect(),
        ..Default::default()
    };
    let here = response(|text| Records::Here(Bytes::from_static(text)));
    let elsewhere = response(|text| Records::Elsewhere(text.len() as u32));
    for version in ApiKey::Fetch.row().served.iter() {
        let mut whole = Vec::new();
        assert_eq!(
            encode_response(&mut whole, version, 1, &here),
            Ok(Vec::new())
        );
        // Behind other frames.
        let mut out = b"before".to_vec();
        let gaps = encode_response(&mut out, version, 1, &elsewhere).unwrap();
        let bytes = &out[6..];
        let missing: Vec<&[u8]> = texts.into_iter().filter(|text| !text.is_empty()).collect();
        assert_eq!(
            gaps.iter()
                .map(|gap| gap.length as usize)
                .collect::<Vec<_>>(),
            missing.iter().map(|text| text.len()).collect::<Vec<_>>()
        );
        let sent: Vec<&[u8]> = parts(bytes, &gaps)
            .map(|part| match part {
                Part::Frame(bytes) => bytes,
                Part::Records(index) => missing[index],
            })
            .collect();
        assert_eq!(sent.concat(), whole, "version {version}");
    }
}

#[test]
fn what_a_version_cannot_express_is_refused_and_leaves_nothing_behind() {
    let mut out = b"before".to_vec();
    let long = Str::from("x".repeat(1 << 15));
    let response = ListGroupsResponse {
        groups: vec![
            ListGroupsResponseGroup::default(),
            ListGroupsResponseGroup {
                group_id: long,
                ..Default::default()
            },
        ],
        ..Default::default()
    };
    let fault = encode_response(&mut out, 2, 1, &response).unwrap_err();
    assert_eq!(
        fault.to_string(),
        "groups[1].group_id: longer than its length can say"
    );
    assert_eq!(out, b"before");
    assert!(encode_response(&mut out, 3, 1, &response).is_ok());

    let mut out = Vec::new();
    let partition = || FetchResponsePartition {
        records: Some(Records::Elsewhere(i32::MAX as u32)),
        ..Default::default()
    };
    let response = FetchResponse {
        responses: vec![FetchResponseTopic {
            partitions: vec![partition()],
            ..Default::default()
        }],
        ..Default::default()
    };
    let fault = encode_response(&mut out, 4, 1, &response).unwrap_err();
    assert_eq!(fault.to_string(), "a frame of more than 2 GiB");
    assert!(out.is_empty());
}
