// Package storetest is the suite that every backend of host/store passes.
//
//	func TestSuite(t *testing.T) {
//		storetest.Run(t, func(t *testing.T, c storetest.Config) func() *store.Store {
//			return func() *store.Store { return memory.New(memory.Config{Now: c.Now, Quota: c.Quota}) }
//		})
//	}
package storetest

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/host/internal/store"
)

// Config is the configuration of a store that the suite opens.
type Config struct {
	Now   func() time.Time
	Quota store.Quota
}

// Backend prepares an empty place for state and returns how it is opened,
// which may be done several times: each is another host. What is opened must
// be closed by the backend's own cleanup.
type Backend func(t *testing.T, c Config) (open func() *store.Store)

// A Clock is a clock that only Advance moves.
type Clock struct{ nanos atomic.Int64 }

// NewClock returns a clock with the current time: a server with its own clock must not
// regard the test's later expiry times as past.
func NewClock() *Clock {
	c := &Clock{}
	c.nanos.Store(time.Now().UnixNano())
	return c
}

// Now returns the clock's time.
func (c *Clock) Now() time.Time { return time.Unix(0, c.nanos.Load()) }

// Advance moves the clock by d.
func (c *Clock) Advance(d time.Duration) { c.nanos.Add(int64(d)) }

// Run runs all tests of the suite against a backend.
func Run(t *testing.T, backend Backend) {
	for _, part := range []struct {
		name string
		test func(*testing.T, Backend)
	}{
		{"keys", testKeys},
		{"versions", testVersions},
		{"expiry", testExpiry},
		{"list", testList},
		{"names", testNames},
		{"bounds", testBounds},
		{"contention", testContention},
		{"winner", testOneWinner},
		{"approvals", testApprovals},
		{"log", testLogs},
		{"batches", testBatches},
		{"tail", testFollow},
		{"trim", testTrim},
		{"trim several", testTrimSeveral},
		{"drop", testDrop},
		{"blobs", testBlobs},
		{"blob races", testBlobRaces},
		{"quota", testQuota},
		{"trim blobs", testTrimBlobs},
		{"reopened", testReopen},
		{"cancelled", testCancelled},
	} {
		t.Run(part.name, func(t *testing.T) { part.test(t, backend) })
	}
}

// openStore opens a new store with its clock.
func openStore(t *testing.T, backend Backend) (*store.Store, *Clock) {
	t.Helper()
	clock := NewClock()
	s := backend(t, Config{Now: clock.Now})()
	require.NotNil(t, s)
	return s, clock
}
