package jetstream

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	js "github.com/nats-io/nats.go/jetstream"

	"github.com/toolroom-mcp/toolroom/host/internal/store"
)

const (
	// expirySlack is the time after the expiry by the hosts' clocks at which the server
	// removes expired data.
	expirySlack = time.Minute
	// tombstoneAge is the lifetime of the message about a deleted key.
	tombstoneAge = time.Hour
)

// keys is the store.Keys of a cluster.
type keys cluster

// lastMessage returns the last message of a subject and its sequence; nil and 0 without
// a message. live is true if the message neither marks a deletion nor has expired.
func (c *cluster) lastMessage(ctx context.Context, s *streams, subject string) (m *js.RawStreamMsg, seq uint64, live bool, err error) {
	m, err = s.keys.GetLastMsgForSubject(ctx, subject)
	if errors.Is(err, js.ErrMsgNotFound) {
		return nil, 0, false, nil
	}
	if err != nil {
		return nil, 0, false, c.explain(ctx, err)
	}
	return m, m.Sequence, c.isLive(m.Header), nil
}

// isLive reports whether a message with the headers h is an entry that is neither
// deleted nor expired.
func (c *cluster) isLive(h nats.Header) bool {
	expires := headerInt(h, headerExpires)
	return len(h[headerDeleted]) == 0 && (expires == 0 || expires > c.Now().UnixMilli())
}

// Get implements store.Keys.
func (k *keys) Get(ctx context.Context, key string) (store.Entry, error) {
	c := (*cluster)(k)
	s, err := c.open(ctx)
	if err != nil {
		return store.Entry{}, err
	}
	m, _, live, err := c.lastMessage(ctx, s, c.subject("keys", key))
	switch {
	case err != nil:
		return store.Entry{}, err
	case !live:
		return store.Entry{}, store.NotFoundError(key)
	}
	return entryOf(key, m), nil
}

// entryOf returns the entry of key in a message.
func entryOf(key string, m *js.RawStreamMsg) store.Entry {
	e := store.Entry{Key: key, Value: m.Data, Version: store.Version(m.Sequence)}
	if expires := headerInt(m.Header, headerExpires); expires != 0 {
		e.Expires = time.UnixMilli(expires)
	}
	return e
}

// Put implements store.Keys.
func (k *keys) Put(ctx context.Context, key string, value []byte, was store.Version, expires time.Time) (store.Version, error) {
	c := (*cluster)(k)
	m := nats.NewMsg(c.subject("keys", key))
	m.Data = value
	var ttl time.Duration
	if !expires.IsZero() {
		until := store.RoundExpiry(expires)
		m.Header.Set(headerExpires, strconv.FormatInt(max(until.UnixMilli(), 1), 10))
		ttl = max(until.Sub(c.Now()), 0) + expirySlack
	}
	seq, err := c.publishIfVersion(ctx, m, key, was, ttl)
	return store.Version(seq), err
}

// Delete implements store.Keys.
func (k *keys) Delete(ctx context.Context, key string, was store.Version) error {
	c := (*cluster)(k)
	return c.deleteIfVersion(ctx, c.subject("keys", key), key, was)
}

// deleteIfVersion deletes the entry of a subject if its version is was, as
// store.Keys.Delete: it returns CONFLICT for another version.
func (c *cluster) deleteIfVersion(ctx context.Context, subject, key string, was store.Version) error {
	if was <= store.Absent { // with Any and Absent, mostly one attempt is enough
		s, err := c.open(ctx)
		if err != nil {
			return err
		}
		_, _, live, err := c.lastMessage(ctx, s, subject)
		if err != nil {
			return err
		}
		if !live {
			return nil
		}
		if was == store.Absent {
			return store.ConflictError(key)
		}
	}
	m := nats.NewMsg(subject)
	m.Header.Set(headerDeleted, "1")
	_, err := c.publishIfVersion(ctx, m, key, was, tombstoneAge)
	return err
}

// publishIfVersion publishes the message m for key if the key's version is was, and
// returns its sequence; otherwise it returns CONFLICT. ttl is the message's lifetime;
// 0: no limit.
func (c *cluster) publishIfVersion(ctx context.Context, m *nats.Msg, key string, was store.Version, ttl time.Duration) (uint64, error) {
	s, err := c.open(ctx)
	if err != nil {
		return 0, err
	}
	for {
		options := []js.PublishOpt{js.WithExpectStream(c.Name + "-keys")}
		if ttl > 0 {
			options = append(options, js.WithMsgTTL(ttl.Round(time.Second)))
		}
		if was != store.Any {
			_, seq, live, err := c.lastMessage(ctx, s, m.Subject)
			if err != nil {
				return 0, err
			}
			version := store.Absent
			if live {
				version = store.Version(seq)
			}
			if version != was {
				return 0, store.ConflictError(key)
			}
			// Replace the message of an expired value or a deletion, if it still
			// exists.
			options = append(options, js.WithExpectLastSequencePerSubject(seq))
		}
		ack, err := s.js.PublishMsg(ctx, m, options...)
		if err == nil {
			return ack.Sequence, nil
		}
		if !isWrongSequence(err) {
			return 0, c.explain(ctx, err)
		}
		// Another process was first, or the server removed an expired value: read
		// again.
	}
}

// List implements store.Keys.
func (k *keys) List(ctx context.Context, prefix, after string, limit int) ([]store.Entry, error) {
	c := (*cluster)(k)
	s, err := c.open(ctx)
	if err != nil {
		return nil, err
	}
	var names []string
	err = visitMessages(ctx, s.keys, c.subjectsBelow("keys", prefix), 1, true, func(m js.Msg, _ uint64) bool {
		name, ok := c.nameOfSubject("keys", m.Subject())
		if ok && strings.HasPrefix(name, prefix) && name > after && c.isLive(m.Headers()) {
			names = append(names, name)
		}
		return true
	})
	if err != nil {
		return nil, c.explain(ctx, err)
	}
	slices.Sort(names)
	var page []store.Entry
	bytes := 0
	for _, name := range slices.Compact(names) { // a key that changed meanwhile is listed twice
		if len(page) == limit || bytes > store.MaxPageBytes {
			break
		}
		m, _, live, err := c.lastMessage(ctx, s, c.subject("keys", name))
		if err != nil {
			return nil, err
		}
		if live {
			page = append(page, entryOf(name, m))
			bytes += len(m.Data)
		}
	}
	return page, nil
}
