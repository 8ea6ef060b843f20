// franz-go.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"runtime/debug"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

const (
	sessionTimeout = 6 * time.Second
	heartbeat      = 500 * time.Millisecond
	pollTimeout    = 200 * time.Millisecond
	// Events that are read before they are committed.
	batchMax = 500
)

type order struct {
	Verb, Bootstrap, Topic, To, Group, File, Codec string
	Partitions                                     int32
	Count                                          int
	Timestamps                                     []int64
	Idempotent                                     bool
	Steps                                          []step
}

type step struct {
	Do, Topic, Group  string
	Partitions, Count int
	Partition         int32
	Before            int64
	Configs           map[string]string
}

// A header is a pair of name and value: JSON has no tuples of Go's.
type event struct {
	P int32    `json:"p"`
	O int64    `json:"o"`
	T int64    `json:"t"`
	K *[]byte  `json:"k"`
	V *[]byte  `json:"v"`
	H [][2]any `json:"h"`
}

type object = map[string]any

var (
	asked order
	out   = bufio.NewWriter(os.Stdout)
	// Callbacks speak too.
	speaking sync.Mutex
)

func must(fault error) {
	if fault != nil {
		fmt.Fprintln(os.Stderr, fault)
		os.Exit(1)
	}
}

func say(what any) {
	speaking.Lock()
	defer speaking.Unlock()
	must(json.NewEncoder(out).Encode(what))
	must(out.Flush())
}

func sayRecord(one *kgo.Record) {
	pointer := func(data []byte) *[]byte {
		if data == nil {
			return nil
		}
		return &data
	}
	headers := make([][2]any, 0, len(one.Headers))
	for _, header := range one.Headers {
		headers = append(headers, [2]any{header.Key, pointer(header.Value)})
	}
	say(event{one.Partition, one.Offset, one.Timestamp.UnixMilli(), pointer(one.Key), pointer(one.Value), headers})
}

func records(path, topic string) []*kgo.Record {
	file, fault := os.Open(path)
	must(fault)
	var found []*kgo.Record
	for lines := json.NewDecoder(file); lines.More(); {
		var one struct {
			P    int32
			T    int64
			K, V []byte
			H    [][2]*string
		}
		must(lines.Decode(&one))
		record := &kgo.Record{Topic: topic, Partition: one.P, Timestamp: time.UnixMilli(one.T), Key: one.K, Value: one.V}
		for _, pair := range one.H {
			var value []byte
			if pair[1] != nil {
				must(json.Unmarshal([]byte(strconv.Quote(*pair[1])), &value))
			}
			record.Headers = append(record.Headers, kgo.RecordHeader{Key: *pair[0], Value: value})
		}
		found = append(found, record)
	}
	return found
}

func client(more ...kgo.Opt) *kgo.Client {
	made, fault := kgo.NewClient(append(more, kgo.SeedBrokers(asked.Bootstrap))...)
	must(fault)
	return made
}

func produce(ctx context.Context) {
	codecs := map[string]kgo.CompressionCodec{
		"none": kgo.NoCompression(), "gzip": kgo.GzipCompression(), "snappy": kgo.SnappyCompression(),
		"lz4": kgo.Lz4Compression(), "zstd": kgo.ZstdCompression(),
	}
	options := []kgo.Opt{kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.ProducerBatchCompression(codecs[asked.Codec])}
	if !asked.Idempotent {
		options = append(options, kgo.DisableIdempotentWrite(), kgo.MaxProduceRequestsInflightPerBroker(1))
	}
	to := client(options...)
	sent := records(asked.File, asked.Topic)
	must(to.ProduceSync(ctx, sent...).FirstErr())
	to.Close()
	say(object{"produced": len(sent)})
}

func consume(ctx context.Context) {
	starts := map[int32]kgo.Offset{}
	for partition := range asked.Partitions {
		starts[partition] = kgo.NewOffset().AtStart()
	}
	from := client(kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{asked.Topic: starts}))
	for left := asked.Count; left > 0; {
		fetches := from.PollRecords(ctx, left)
		must(fetches.Err0())
		fetches.EachError(func(_ string, _ int32, fault error) { must(fault) })
		fetches.EachRecord(sayRecord)
		left -= fetches.NumRecords()
	}
	from.Close()
}

// Reads as a member of the group until it has read enough, or is to leave; how many it read.
func runMember(ctx context.Context, each func([]*kgo.Record)) int {
	var lock sync.Mutex
	mine := map[int32]bool{}
	// A cooperative rebalance gives and takes some partitions, not all.
	told := func(ours bool) func(context.Context, *kgo.Client, map[string][]int32) {
		return func(_ context.Context, _ *kgo.Client, changed map[string][]int32) {
			lock.Lock()
			defer lock.Unlock()
			for _, partition := range changed[asked.Topic] {
				if ours {
					mine[partition] = true
				} else {
					delete(mine, partition)
				}
			}
			if asked.Verb == "member" {
				say(object{"assigned": slices.AppendSeq([]int32{}, maps.Keys(mine))})
			}
		}
	}
	from := client(
		kgo.ConsumerGroup(asked.Group), kgo.ConsumeTopics(asked.Topic), kgo.DisableAutoCommit(),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.SessionTimeout(sessionTimeout), kgo.HeartbeatInterval(heartbeat),
		kgo.OnPartitionsAssigned(told(true)), kgo.Balancers(kgo.CooperativeStickyBalancer()),
		kgo.OnPartitionsRevoked(told(false)), kgo.OnPartitionsLost(told(false)),
	)
	ended := make(chan struct{})
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		close(ended)
	}()
	count := 0
	for asked.Count == 0 || count < asked.Count {
		select {
		case <-ended:
			from.Close()
			return count
		default:
		}
		most := batchMax
		if asked.Count > 0 {
			most = min(most, asked.Count-count)
		}
		poll, cancel := context.WithTimeout(ctx, pollTimeout)
		fetches := from.PollRecords(poll, most)
		cancel()
		fetches.EachError(func(_ string, _ int32, fault error) {
			if !errors.Is(fault, context.DeadlineExceeded) {
				must(fault)
			}
		})
		read := fetches.Records()
		if len(read) == 0 {
			continue
		}
		each(read)
		count += len(read)
		if fault := from.CommitRecords(ctx, read...); fault != nil {
			// Where a rebalance came between, whoever gets the partition reads it again.
			if !errors.Is(fault, kerr.RebalanceInProgress) && !errors.Is(fault, kerr.IllegalGeneration) {
				must(fault)
			}
		}
	}
	from.Close()
	return count
}

func member(ctx context.Context) {
	runMember(ctx, func(read []*kgo.Record) {
		for _, one := range read {
			sayRecord(one)
		}
	})
	say(object{"left": true})
}

func copyTopic(ctx context.Context) {
	to := client(kgo.RecordPartitioner(kgo.ManualPartitioner()))
	count := runMember(ctx, func(read []*kgo.Record) {
		anew := make([]*kgo.Record, 0, len(read))
		for _, one := range read {
			anew = append(anew, &kgo.Record{
				Topic: asked.To, Partition: one.Partition, Timestamp: one.Timestamp, Key: one.Key, Value: one.Value, Headers: one.Headers,
			})
		}
		must(to.ProduceSync(ctx, anew...).FirstErr())
	})
	to.Close()
	say(object{"copied": count})
}

func offsets(ctx context.Context) {
	admin := kadm.NewClient(client())
	by := func(found kadm.ListedOffsets, fault error) map[int32]int64 {
		must(fault)
		must(found.Error())
		places := map[int32]int64{}
		found.Each(func(one kadm.ListedOffset) { places[one.Partition] = one.Offset })
		return places
	}
	at := []map[int32]int64{}
	for _, timestamp := range asked.Timestamps {
		at = append(at, by(admin.ListOffsetsAfterMilli(ctx, timestamp, asked.Topic)))
	}
	say(object{
		"earliest": by(admin.ListStartOffsets(ctx, asked.Topic)), "latest": by(admin.ListEndOffsets(ctx, asked.Topic)), "at": at,
	})
}

func admin(ctx context.Context) {
	one := kadm.NewClient(client())
	for _, asked := range asked.Steps {
		said, fault := do(ctx, one, asked)
		if fault != nil {
			said = object{"error": fault.Error()}
		}
		say(said)
	}
}

func do(ctx context.Context, admin *kadm.Client, asked step) (object, error) {
	switch asked.Do {
	case "cluster":
		found, fault := admin.BrokerMetadata(ctx)
		brokers := [][2]any{}
		for _, broker := range found.Brokers {
			brokers = append(brokers, [2]any{broker.Host, broker.Port})
		}
		return object{"cluster": found.Cluster, "controller": found.Controller, "brokers": brokers}, fault
	case "create":
		configs := map[string]*string{}
		for name, value := range asked.Configs {
			configs[name] = &value
		}
		_, fault := admin.CreateTopic(ctx, int32(asked.Partitions), 1, configs, asked.Topic)
		return object{}, fault
	case "topics":
		found, fault := admin.ListTopics(ctx)
		return object{"topics": found.Names()}, fault
	case "describe":
		found, fault := admin.ListTopics(ctx, asked.Topic)
		return object{"partitions": len(found[asked.Topic].Partitions)}, fault
	case "configs":
		found, fault := admin.DescribeTopicConfigs(ctx, asked.Topic)
		if fault != nil {
			return nil, fault
		}
		configs := map[string]string{}
		for _, one := range found[0].Configs {
			configs[one.Key] = one.MaybeValue()
		}
		return object{"configs": configs}, found[0].Err
	case "alter":
		var changes []kadm.AlterConfig
		for name, value := range asked.Configs {
			changes = append(changes, kadm.AlterConfig{Op: kadm.SetConfig, Name: name, Value: &value})
		}
		found, fault := admin.AlterTopicConfigs(ctx, changes, asked.Topic)
		if fault != nil {
			return nil, fault
		}
		return object{}, found[0].Err
	case "partitions":
		found, fault := admin.UpdatePartitions(ctx, asked.Count, asked.Topic)
		return object{}, errors.Join(fault, found.Error())
	case "delete_records":
		places := kadm.Offsets{}
		places.AddOffset(asked.Topic, asked.Partition, asked.Before, -1)
		found, fault := admin.DeleteRecords(ctx, places)
		return object{}, errors.Join(fault, found.Error())
	case "delete":
		found, fault := admin.DeleteTopics(ctx, asked.Topic)
		return object{}, errors.Join(fault, found.Error())
	case "groups":
		found, fault := admin.ListGroups(ctx)
		return object{"groups": found.Groups()}, fault
	case "group":
		found, fault := admin.DescribeGroups(ctx, asked.Group)
		group := found[asked.Group]
		return object{"state": group.State, "members": len(group.Members)}, errors.Join(fault, group.Err)
	case "committed":
		found, fault := admin.FetchOffsets(ctx, asked.Group)
		places := map[int32]int64{}
		for partition, place := range found.Offsets()[asked.Topic] {
			places[partition] = place.At
		}
		return object{"committed": places}, fault
	case "delete_group":
		found, fault := admin.DeleteGroups(ctx, asked.Group)
		return object{}, errors.Join(fault, found.Error())
	}
	return nil, fmt.Errorf("no such step: %s", asked.Do)
}

func version(context.Context) {
	info, _ := debug.ReadBuildInfo()
	for _, module := range info.Deps {
		if module.Path == "github.com/twmb/franz-go" {
			say(object{"version": module.Version})
		}
	}
}

func main() {
	must(json.Unmarshal([]byte(os.Args[1]), &asked))
	verbs := map[string]func(context.Context){
		"version": version, "produce": produce, "consume": consume, "offsets": offsets, "admin": admin, "member": member,
		"copy": copyTopic,
	}
	verbs[asked.Verb](context.Background())
}
