// Package backend opens the store that a configuration names. Only this package
// imports all backends, and so their libraries.
package backend

import (
	"net/url"
	"strings"
	"time"

	"github.com/toolroom-mcp/toolroom/host/internal/config/secret"
	"github.com/toolroom-mcp/toolroom/host/internal/store"
	"github.com/toolroom-mcp/toolroom/host/internal/store/jetstream"
	"github.com/toolroom-mcp/toolroom/host/internal/store/memory"
	"github.com/toolroom-mcp/toolroom/host/internal/store/sqlite"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// Config holds the location and the limits of the store.
type Config struct {
	// URL is "" for a database in Dir, "memory:" for a store in memory, or the URL of
	// a NATS cluster: nats://, tls://, ws:// or wss://, several separated by commas.
	// Its parameters are name, replicas and credentials (a file).
	URL string
	Dir string // the state directory

	Token    secret.Text   // for the cluster; "": none
	MaxBytes int64         // of keys and of logs; 0: 512 MiB
	Quota    store.Quota   // of blobs
	Wait     time.Duration // longest wait for other processes; 0: 10 s
}

// IsCluster reports whether the store is that of a cluster, which hosts of several machines
// share.
func (c Config) IsCluster() bool { return c.URL != "" && c.URL != "memory:" }

// String returns the location without credentials.
func (c Config) String() string {
	switch {
	case c.URL == "memory:":
		return "in memory until the host ends"
	case c.URL != "":
		return secret.RedactURL(c.URL)
	case c.Dir == "":
		return "nowhere"
	}
	return "sqlite in " + c.Dir
}

// Validate returns an error that names the wrong field.
func (c Config) Validate() error {
	_, err := c.parse()
	switch {
	case err != nil:
		return err
	case c.URL == "" && c.Dir == "":
		return toolerr.New(toolerr.InvalidInput, "store: neither a url nor a state directory; give one with --state")
	case c.MaxBytes < 0 || c.Quota.Blob < 0 || c.Quota.Total < 0 || c.Wait < 0:
		return toolerr.New(toolerr.InvalidInput, "store: max_bytes, quota and wait cannot be negative")
	}
	return nil
}

// Open returns the store that the configuration names. It connects at the first use. It
// fails if Validate fails.
func Open(c Config) (*store.Store, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	switch {
	case c.URL == "":
		return sqlite.New(sqlite.Config{Dir: c.Dir, MaxBytes: c.MaxBytes, Quota: c.Quota, Wait: c.Wait}), nil
	case c.URL == "memory:":
		return memory.New(memory.Config{Quota: c.Quota}), nil
	}
	cluster, err := c.parse()
	if err != nil {
		return nil, err
	}
	return jetstream.New(cluster), nil
}

// parse returns the configuration of a cluster from the URL, whose parameters follow the
// last server; for other URLs only the limits. It returns INVALID_INPUT for an unsupported
// or malformed URL.
func (c Config) parse() (jetstream.Config, error) {
	j := jetstream.Config{Token: c.Token.Reveal(), MaxBytes: c.MaxBytes, Quota: c.Quota}
	if c.URL == "" || c.URL == "memory:" {
		return j, nil
	}
	servers, parameters, _ := strings.Cut(c.URL, "?")
	for server := range strings.SplitSeq(servers, ",") {
		u, err := url.Parse(strings.TrimSpace(server))
		if err != nil { // the error's text would contain a password
			return j, toolerr.New(toolerr.InvalidInput, "store: the url cannot be read; write nats://HOST:4222")
		}
		switch u.Scheme {
		case "nats", "tls", "ws", "wss":
		default:
			return j, toolerr.New(toolerr.InvalidInput, "store: %s is not supported; use nats://HOST:4222, memory:, or no url for a database in the state directory", u.Redacted())
		}
	}
	values, err := url.ParseQuery(parameters)
	if err != nil {
		return j, toolerr.New(toolerr.InvalidInput, "store: the url's parameters cannot be read: %w", err)
	}
	j.URL = servers
	return j, setParameters(&j, values)
}
