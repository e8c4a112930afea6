package jetstream

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	js "github.com/nats-io/nats.go/jetstream"
)

// subject returns the subject of a name: NAME.kind.a.b for a/b.
func (c *cluster) subject(kind, name string) string {
	var b strings.Builder
	b.WriteString(c.Name + "." + kind)
	for part := range strings.SplitSeq(name, "/") {
		b.WriteByte('.')
		if part == "" {
			b.WriteByte('=')
		}
		for i := range len(part) {
			if ch := part[i]; ch >= 'a' && ch <= 'z' || ch >= 'A' && ch <= 'Z' || ch >= '0' && ch <= '9' || ch == '-' || ch == '_' {
				b.WriteByte(ch)
			} else {
				fmt.Fprintf(&b, "=%02X", ch)
			}
		}
	}
	return b.String()
}

// subjectsBelow returns the subject filter for all names that begin with prefix, and
// perhaps more names: those below its last slash.
func (c *cluster) subjectsBelow(kind, prefix string) string {
	last := strings.LastIndexByte(prefix, '/')
	if last < 0 {
		return c.Name + "." + kind + ".>"
	}
	return c.subject(kind, prefix[:last]) + ".>"
}

// nameOfSubject is the inverse of subject. ok is false for other subjects.
func (c *cluster) nameOfSubject(kind, subject string) (name string, ok bool) {
	rest, ok := strings.CutPrefix(subject, c.Name+"."+kind+".")
	if !ok {
		return "", false
	}
	var parts []string
	for part := range strings.SplitSeq(rest, ".") {
		var b strings.Builder
		if part == "=" {
			part = ""
		}
		for i := 0; i < len(part); i++ {
			if part[i] != '=' {
				b.WriteByte(part[i])
				continue
			}
			if i+2 >= len(part) {
				return "", false
			}
			ch, err := strconv.ParseUint(part[i+1:i+3], 16, 8)
			if err != nil {
				return "", false
			}
			b.WriteByte(byte(ch))
			i += 2
		}
		parts = append(parts, b.String())
	}
	return strings.Join(parts, "/"), true
}

// The headers of our messages.
const (
	headerExpires = "Toolroom-Expires" // expiry of a key, Unix milliseconds
	headerDeleted = "Toolroom-Deleted" // the key was deleted
	headerTime    = "Toolroom-Time"    // time of a batch, Unix milliseconds
	headerBytes   = "Toolroom-Bytes"   // bytes of a batch's data
	headerRecords = "Toolroom-Records" // number of a batch's records
)

// headerInt returns the number in a header, 0 if it is missing.
func headerInt(h map[string][]string, key string) int64 {
	if len(h[key]) == 0 {
		return 0
	}
	n, _ := strconv.ParseInt(h[key][0], 10, 64) // we wrote it
	return n
}

// visitMessages calls visit with the messages that filter matches, oldest first, from the
// sequence from on, until visit returns false or the messages that existed at the call have
// been visited. With headersOnly the messages have no data. It returns the first error of
// the server.
func visitMessages(ctx context.Context, s js.Stream, filter string, from uint64, headersOnly bool, visit func(m js.Msg, seq uint64) (more bool)) error {
	config := js.ConsumerConfig{
		FilterSubject: filter, AckPolicy: js.AckNonePolicy, HeadersOnly: headersOnly,
		MemoryStorage: true, Replicas: 1, InactiveThreshold: time.Minute,
	}
	if from > 1 {
		config.DeliverPolicy, config.OptStartSeq = js.DeliverByStartSequencePolicy, from
	}
	consumer, err := s.CreateConsumer(ctx, config)
	if err != nil {
		return err
	}
	info := consumer.CachedInfo()
	defer func() { _ = s.DeleteConsumer(context.WithoutCancel(ctx), info.Name) }() // else the server does, after a minute
	step := 16                                                                     // at most 1 MiB each
	if headersOnly {
		step = 512
	}
	for left := int(info.NumPending); left > 0; {
		batch, err := consumer.FetchNoWait(min(left, step))
		if err != nil {
			return err
		}
		got := 0
		for m := range batch.Messages() {
			got++
			meta, err := m.Metadata()
			if err != nil {
				return err
			}
			if !visit(m, meta.Sequence.Stream) {
				return nil
			}
		}
		if err := batch.Error(); err != nil {
			return err
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		if got == 0 { // they were removed meanwhile
			return nil
		}
		left -= got
	}
	return nil
}
