// Package jetstream is the store of many machines: a NATS cluster with JetStream, version 2.11
// or later, named by its URL.
//
// Its three streams are created at the first use. An administrator may create them before,
// with other limits or more replicas; they are used unchanged if their metadata contains
// toolroom_schema=1.
//
//	NAME-keys   NAME.keys.KEY  the last value of each key; NAME.blob.ID  which upload is a blob
//	NAME-log    NAME.log.LOG   one message a batch
//	NAME-chunk  NAME.chunk.UPLOAD.N  the content of blobs
//
// Names become subjects: slashes become dots, and characters that subjects cannot contain
// become =XX. A version is the message's sequence in its stream. So is a cursor, except for its
// last twelve bits, the record's position in its batch.
//
// All reads go to the leader of a stream, never to a follower, so that a read returns the
// latest write. The hosts' clocks decide about expiry; the server removes expired data some
// time later.
package jetstream

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	js "github.com/nats-io/nats.go/jetstream"

	"github.com/toolroom-mcp/toolroom/host/internal/store"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

const (
	schemaVersion = 1
	schemaKey     = "toolroom_schema"

	// requestTimeout limits a request whose caller has no deadline.
	requestTimeout = 5 * time.Second
	// dialTimeout is the longest time for a connection to a server.
	dialTimeout = 2 * time.Second
	// failureAge is the time after a failed attempt to connect in which all callers get its
	// error instead of a new attempt.
	failureAge = 200 * time.Millisecond
)

// Config describes a store. URL must be set.
type Config struct {
	URL         string // one URL or several separated by commas: nats://, tls://, ws:// or wss://
	Name        string // name of this store in the cluster; "": toolroom
	Credentials string // file with a user's credentials; "": none
	Token       string // "": none
	Replicas    int    // of created streams; 0: 1
	MaxBytes    int64  // limit of created streams of keys and of logs, each; 0: 512 MiB
	Quota       store.Quota
	Now         func() time.Time // nil: time.Now
}

// New returns the store at a URL. The first use connects.
func New(c Config) *store.Store {
	if c.Name == "" {
		c.Name = "toolroom"
	}
	if c.Replicas == 0 {
		c.Replicas = 1
	}
	if c.MaxBytes == 0 {
		c.MaxBytes = 512 << 20
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	c.Quota = c.Quota.WithDefaults()
	cl := &cluster{Config: c}
	return store.New((*keys)(cl), (*log)(cl), (*blobs)(cl), cl.close)
}

// cluster is a store in a NATS cluster. It connects when it is first used, and after a
// lost connection.
type cluster struct {
	Config

	mu     sync.Mutex
	opened *streams
	failed error // error of the last attempt to connect, at tried
	tried  time.Time
	closed bool
}

// streams is an open connection with its three streams.
type streams struct {
	conn             *nats.Conn
	js               js.JetStream
	keys, log, chunk js.Stream
}

// open returns the connection, and connects if necessary. For failureAge after a failed
// attempt it returns the same error; then the next call tries again. It returns
// INTERNAL after close.
func (c *cluster) open(ctx context.Context) (*streams, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil, toolerr.New(toolerr.Internal, "the store at %s was closed", c.redactedURL())
	}
	if c.opened != nil && !c.opened.conn.IsClosed() {
		return c.opened, nil
	}
	c.opened = nil
	if c.failed != nil && time.Since(c.tried) < failureAge {
		return nil, c.failed
	}
	s, err := c.connect(ctx)
	if err != nil {
		if ctx.Err() == nil {
			c.failed, c.tried = err, time.Now()
		}
		return nil, err
	}
	c.opened, c.failed = s, nil
	return s, nil
}

// connect connects to the servers, and creates the streams that are missing.
func (c *cluster) connect(ctx context.Context) (*streams, error) {
	options := []nats.Option{
		nats.Name("toolroom"), nats.Timeout(dialTimeout),
		// A lost connection ends the requests that wait on it: the library would keep
		// them waiting and send them later without the caller's knowledge. The next
		// caller connects again.
		nats.NoReconnect(),
		nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {}), // the default prints
	}
	if c.Credentials != "" {
		options = append(options, nats.UserCredentials(c.Credentials))
	}
	if c.Token != "" {
		options = append(options, nats.Token(c.Token))
	}
	conn, err := nats.Connect(c.URL, options...)
	if err != nil {
		return nil, c.explain(ctx, err)
	}
	s := &streams{conn: conn}
	if err := c.openStreams(ctx, s); err != nil {
		conn.Close()
		return nil, c.explain(ctx, err)
	}
	return s, nil
}

// openStreams sets the streams of s, and creates those that do not exist.
func (c *cluster) openStreams(ctx context.Context, s *streams) (err error) {
	if s.js, err = js.New(s.conn, js.WithDefaultTimeout(requestTimeout)); err != nil {
		return err
	}
	base := js.StreamConfig{
		Replicas: c.Replicas, Discard: js.DiscardNew, MaxBytes: c.MaxBytes,
		MaxMsgsPerSubject: -1, Metadata: map[string]string{schemaKey: fmt.Sprint(schemaVersion)},
	}
	keys, log, chunk := base, base, base
	keys.Name, keys.Subjects = c.Name+"-keys", []string{c.Name + ".keys.>", c.Name + ".blob.>"}
	keys.MaxMsgsPerSubject, keys.AllowMsgTTL = 1, true
	log.Name, log.Subjects = c.Name+"-log", []string{c.Name + ".log.>"}
	chunk.Name, chunk.Subjects = c.Name+"-chunk", []string{c.Name + ".chunk.>"}
	// Uploads count, too, and a message is larger than its data.
	chunk.MaxBytes = 2*c.Quota.Total + c.Quota.Blob + 1<<20
	for _, one := range []struct {
		stream *js.Stream
		config js.StreamConfig
	}{{&s.keys, keys}, {&s.log, log}, {&s.chunk, chunk}} {
		if *one.stream, err = openStream(ctx, s.js, one.config); err != nil {
			return err
		}
	}
	return nil
}

// openStream returns the stream with the name of config, and creates it if it does not
// exist. It returns an error for another program's stream, and one that wraps
// store.ErrNewer for a newer schema.
func openStream(ctx context.Context, j js.JetStream, config js.StreamConfig) (js.Stream, error) {
	s, err := j.Stream(ctx, config.Name)
	if errors.Is(err, js.ErrStreamNotFound) {
		s, err = j.CreateStream(ctx, config)
		if errors.Is(err, js.ErrStreamNameAlreadyInUse) { // another process has created it
			s, err = j.Stream(ctx, config.Name)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("stream %s: %w", config.Name, err)
	}
	have := s.CachedInfo().Config
	var version int
	if _, err := fmt.Sscan(have.Metadata[schemaKey], &version); err != nil || version < 1 {
		return nil, toolerr.New(toolerr.ExecutionError, "stream %s has no %s in its metadata, so it may be another program's; choose another name for the store", config.Name, schemaKey)
	}
	if version > schemaVersion {
		return nil, toolerr.New(toolerr.ExecutionError,
			"stream %s has schema %d, and this version knows %d: it was %w of toolroom; update this one, or choose another name for the store",
			config.Name, version, schemaVersion, store.ErrNewer)
	}
	return s, nil
}

// close closes the connection. Later uses fail.
func (c *cluster) close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	if c.opened != nil {
		c.opened.conn.Close()
		c.opened = nil
	}
	return nil
}

// redactedURL returns the URLs without user names and passwords, for messages.
func (c *cluster) redactedURL() string {
	var all []string
	for one := range strings.SplitSeq(c.URL, ",") {
		u, err := url.Parse(strings.TrimSpace(one))
		switch {
		case err != nil:
			all = append(all, "a URL that cannot be read")
		case u.User != nil:
			u.User = url.User("redacted")
			fallthrough
		default:
			all = append(all, u.String())
		}
	}
	return strings.Join(all, ",")
}

// Error codes of the server for which its client library has no names
// (nats-server/server/errors.json).
const (
	codeInsufficientResources = 10023
	codeNoStorage             = 10047
	codeStoreFailed           = 10077 // "maximum bytes exceeded", also for a full disk
)

// explain returns an error of the library as one of package store's errors, with
// advice; nil for nil.
func (c *cluster) explain(ctx context.Context, err error) error {
	var own *toolerr.Error
	var api *js.APIError
	switch {
	case err == nil || errors.As(err, &own):
		return err
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(err, nats.ErrAuthorization), errors.Is(err, nats.ErrAuthExpired):
		return toolerr.New(toolerr.AuthFailed, "%s refused the credentials: %w", c.redactedURL(), err)
	case errors.Is(err, js.ErrJetStreamNotEnabled), errors.Is(err, js.ErrJetStreamNotEnabledForAccount):
		return toolerr.New(toolerr.ExecutionError, "%s has JetStream switched off; start it with -js: %w", c.redactedURL(), err)
	case errors.Is(err, nats.ErrNoResponders), errors.Is(err, js.ErrNoStreamResponse):
		return toolerr.New(toolerr.TransportError, "%s has no JetStream (start it with -js), or no leader for it now: %w", c.redactedURL(), err)
	case !errors.As(err, &api):
		return toolerr.New(toolerr.TransportError, "the store at %s did not answer: %w", c.redactedURL(), err)
	}
	switch api.ErrorCode {
	case codeInsufficientResources, codeNoStorage, codeStoreFailed:
		return toolerr.New(toolerr.NoSpace, "no space in the store at %s; trim, or give its streams more: %w", c.redactedURL(), err)
	}
	return toolerr.New(toolerr.ExecutionError, "the store at %s: %w", c.redactedURL(), err)
}

// isWrongSequence reports whether another process changed the subject first.
func isWrongSequence(err error) bool {
	var api *js.APIError
	return errors.As(err, &api) &&
		(api.ErrorCode == js.JSErrCodeStreamWrongLastSequence || api.ErrorCode == js.JSErrCodeStreamWrongLastSequenceConstant)
}
