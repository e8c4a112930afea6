package audit

import (
	"context"
	"strconv"
	"time"

	"github.com/toolroom-mcp/toolroom/internal/redact"
)

const (
	// gatherTime is the time for which records are collected before they are written.
	gatherTime = 10 * time.Millisecond

	// syncInterval is the time between writes to the disk, and between attempts to write
	// a failed batch.
	syncInterval = time.Second

	// batchBytes is the approximate number of bytes passed to the sink at once; a sink
	// may have its own limit. An event has at most about 16 KiB.
	batchBytes   = 512 << 10
	batchRecords = 2048

	// appendTimeout limits the time of a sink, so that Close returns.
	appendTimeout = 10 * time.Second
)

// batch holds encoded records.
type batch struct {
	text []byte
	ends []int
}

// isFull reports whether the batch must be written before another record is added.
func (b *batch) isFull() bool { return len(b.text) >= batchBytes || len(b.ends) >= batchRecords }

// records returns the records, which share memory with the batch.
func (b *batch) records() [][]byte {
	lines := make([][]byte, len(b.ends))
	begin := 0
	for i, end := range b.ends {
		lines[i], begin = b.text[begin:end:end], end
	}
	return lines
}

// write is the writer's goroutine: it writes the records in batches until Close.
func (l *Log) write() {
	defer close(l.done)
	var b batch
	var spare []record
	dirty, synced := false, time.Now()
	timer := time.NewTimer(syncInterval)
	defer timer.Stop()
	for {
		var tick <-chan time.Time
		if dirty {
			timer.Reset(syncInterval - time.Since(synced))
			tick = timer.C
		}
		select {
		case <-l.wake:
			l.gather()
		case <-tick:
		}
		records, closed := l.takeRecords(spare)
		for i := range records {
			b.text = l.appendRecord(b.text, records[i])
			b.ends = append(b.ends, len(b.text))
			if b.isFull() || i == len(records)-1 {
				l.appendBatch(&b)
				b.text, b.ends, dirty = b.text[:0], b.ends[:0], true
			}
		}
		clear(records) // release the arguments
		spare = records[:0]
		if dirty && (closed || time.Since(synced) >= syncInterval) {
			dirty, synced = false, time.Now()
			if err := l.sink.Sync(); err != nil {
				l.writeFailed(err, 0)
			}
		}
		if closed {
			return
		}
	}
}

// gather waits for more records unless a write is urgent.
func (l *Log) gather() {
	timer := time.NewTimer(gatherTime)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-l.full:
	case <-l.closing:
	}
}

// takeRecords empties the buffer and returns its records, and whether the log is closed.
// spare becomes the new buffer.
func (l *Log) takeRecords(spare []record) ([]record, bool) {
	if cap(spare) > batchRecords {
		spare = nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	records := l.pending
	l.pending, l.weight = spare, 0
	if l.room != nil {
		close(l.room)
		l.room = nil
	}
	select { // the urgent write is being done
	case <-l.full:
	default:
	}
	return records, l.closed
}

// appendBatch passes a batch to the sink. With Required it repeats that until it
// succeeds or the log is closed.
func (l *Log) appendBatch(b *batch) {
	lines := b.records()
	for {
		ctx, cancel := context.WithTimeout(context.Background(), appendTimeout)
		err := l.sink.Append(ctx, lines...)
		cancel()
		if err == nil {
			l.writeSucceeded()
			return
		}
		if !l.cfg.Required {
			l.writeFailed(err, len(lines))
			return
		}
		l.writeFailed(err, 0)
		select {
		case <-l.closing:
			l.writeFailed(err, len(lines))
			return
		case <-time.After(syncInterval):
		}
	}
}

// writeFailed stores the error, adds the number of lost records, and calls OnFault for the
// first error.
func (l *Log) writeFailed(err error, lost int) {
	l.mu.Lock()
	tell := l.onFault
	l.onFault, l.fault = nil, err
	l.lostSince += lost
	l.lostTotal += lost
	l.mu.Unlock()
	if tell != nil {
		tell(err)
	}
}

// writeSucceeded ends a failure: it appends a record with the number of lost records, if
// any were lost.
func (l *Log) writeSucceeded() {
	l.mu.Lock()
	lost, why := l.lostSince, l.fault
	l.fault = nil
	l.mu.Unlock()
	if lost == 0 {
		return
	}
	line := time.Now().UTC().AppendFormat([]byte(`{"time":"`), timeFormat)
	line = strconv.AppendInt(append(line, `","event":"audit.lost","records":`...), int64(lost), 10)
	if why != nil {
		line = redact.AppendJSONString(append(line, `,"error":`...), why.Error())
	}
	ctx, cancel := context.WithTimeout(context.Background(), appendTimeout)
	defer cancel()
	if err := l.sink.Append(ctx, append(line, '}')); err != nil {
		l.writeFailed(err, 0)
		return
	}
	l.mu.Lock()
	l.lostSince -= lost
	l.mu.Unlock()
}
