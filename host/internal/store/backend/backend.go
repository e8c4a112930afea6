// Package backend opens the store that a configuration names. It alone knows
// all backends, and so all their libraries.
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

// Config says where state is kept, and how much.
type Config struct {
	// URL is "" for a database in Dir, "memory:" for nothing that lasts, or
	// that of a NATS cluster: nats://, tls://, ws:// or wss://, several with
	// commas. Its parameters are name, replicas and credentials (a file).
	URL string
	Dir string // the state directory

	Token    secret.Text   // for the cluster; "": none
	MaxBytes int64         // of keys and logs; 0: 512 MiB
	Quota    store.Quota   // of blobs
	Wait     time.Duration // for other processes; 0: 10 s
}

// String says where state is kept, without credentials.
func (c Config) String() string {
	switch {
	case c.URL == "memory:":
		return "in memory until the host ends"
	case c.URL != "":
		return secret.URL(c.URL)
	case c.Dir == "":
		return "nowhere"
	}
	return "sqlite in " + c.Dir
}

// Validate names the field that is wrong.
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

// Open returns the store. Nothing is touched before it is first used.
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

// parse takes the URL of a cluster apart. Its parameters stand after the last
// of its servers.
func (c Config) parse() (jetstream.Config, error) {
	j := jetstream.Config{Token: c.Token.Reveal(), MaxBytes: c.MaxBytes, Quota: c.Quota}
	if c.URL == "" || c.URL == "memory:" {
		return j, nil
	}
	servers, parameters, _ := strings.Cut(c.URL, "?")
	for server := range strings.SplitSeq(servers, ",") {
		u, err := url.Parse(strings.TrimSpace(server))
		if err != nil { // whose text would repeat a password
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
	return j, parameter(&j, values)
}
