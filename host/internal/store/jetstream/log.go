package jetstream

import (
	"context"
	"encoding/binary"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"
	js "github.com/nats-io/nats.go/jetstream"

	"github.com/toolroom-mcp/toolroom/host/internal/store"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// positionBits is the number of bits of a cursor for the position of a record in its
// batch, enough for store.MaxBatchRecords.
const positionBits = 12

// log is the store.Log of a cluster.
type log cluster

// Append sends a batch as one message: each record with its length, a uvarint,
// before it.
func (l *log) Append(ctx context.Context, name string, records ...[]byte) (store.Cursor, error) {
	c := (*cluster)(l)
	s, err := c.open(ctx)
	if err != nil {
		return 0, err
	}
	m := nats.NewMsg(c.subject("log", name))
	bytes := 0
	for _, r := range records {
		m.Data = append(binary.AppendUvarint(m.Data, uint64(len(r))), r...)
		bytes += len(r)
	}
	m.Header.Set(headerTime, strconv.FormatInt(c.Now().UnixMilli(), 10))
	m.Header.Set(headerBytes, strconv.Itoa(bytes))
	m.Header.Set(headerRecords, strconv.Itoa(len(records)))
	ack, err := s.js.PublishMsg(ctx, m, js.WithExpectStream(c.Name+"-log"))
	if err != nil {
		return 0, c.explain(ctx, err)
	}
	return cursorOf(ack.Sequence, len(records)-1), nil
}

// cursorOf returns the cursor of a record: the sequence of its message, and its
// position in it.
func cursorOf(seq uint64, place int) store.Cursor {
	return store.Cursor(seq<<positionBits | uint64(place))
}

// Read implements store.Log.
func (l *log) Read(ctx context.Context, name string, after store.Cursor, limit int) ([]store.Record, error) {
	c := (*cluster)(l)
	s, err := c.open(ctx)
	if err != nil {
		return nil, err
	}
	var page []store.Record
	bytes := 0
	var damaged error
	err = visitMessages(ctx, s.log, c.subject("log", name), uint64(after)>>positionBits, false, func(m js.Msg, seq uint64) bool {
		rest, when := m.Data(), time.UnixMilli(headerInt(m.Headers(), headerTime))
		for place := 0; len(rest) > 0; place++ {
			n, width := binary.Uvarint(rest)
			if width <= 0 || n > uint64(len(rest)-width) {
				damaged = toolerr.New(toolerr.ExecutionError, "message %d of stream %s-log is not one of toolroom's", seq, c.Name)
				return false
			}
			data := rest[width : width+int(n)]
			rest = rest[width+int(n):]
			at := cursorOf(seq, place)
			if at <= after {
				continue
			}
			page = append(page, store.Record{Cursor: at, Time: when, Data: data[:n:n]})
			if bytes += len(data); len(page) == limit || bytes > store.MaxPageBytes {
				return false
			}
		}
		return true
	})
	if damaged != nil {
		return nil, damaged
	}
	return page, c.explain(ctx, err)
}

// Trim implements store.Log.
func (l *log) Trim(ctx context.Context, name string, keep store.Retention) (int, error) {
	c := (*cluster)(l)
	s, err := c.open(ctx)
	if err != nil {
		return 0, err
	}
	filter := c.subject("log", name)
	if prefix, all := store.ParseTrimName(name); all {
		filter = c.subjectsBelow("log", prefix)
	}
	type batch struct {
		seq            uint64
		bytes, records int
		milli          int64
	}
	var all []batch
	err = visitMessages(ctx, s.log, filter, 1, true, func(m js.Msg, seq uint64) bool {
		h := m.Headers()
		all = append(all, batch{seq, int(headerInt(h, headerBytes)), int(headerInt(h, headerRecords)), headerInt(h, headerTime)})
		return true
	})
	if err != nil {
		return 0, c.explain(ctx, err)
	}
	goes := keep.Exceeded(c.Now())
	cut := len(all) - 1
	for cut >= 0 && !goes(all[cut].bytes, all[cut].milli) {
		cut--
	}
	if cut < 0 {
		return 0, nil
	}
	removed := 0
	for _, b := range all[:cut+1] {
		removed += b.records
	}
	err = s.log.Purge(ctx, js.WithPurgeSubject(filter), js.WithPurgeSequence(all[cut].seq+1))
	return removed, c.explain(ctx, err)
}

// Drop implements store.Log.
func (l *log) Drop(ctx context.Context, name string) error {
	c := (*cluster)(l)
	s, err := c.open(ctx)
	if err != nil {
		return err
	}
	return c.explain(ctx, s.log.Purge(ctx, js.WithPurgeSubject(c.subject("log", name))))
}
