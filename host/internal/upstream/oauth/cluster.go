package oauth

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/toolroom-mcp/toolroom/host/internal/store"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// With InCluster, the record of a sign-in is a key of the store that the hosts of several
// machines share, and its lock is another key. A process that ends without unlocking has
// the lock until it expires. The expiry is compared with the clocks of the hosts, which may
// differ by less than leaseDuration - leaseRenewInterval.
const (
	recordKeyPrefix = "oauth/record/"
	lockKeyPrefix   = "oauth/lock/"

	leaseDuration      = 45 * time.Second
	leaseRenewInterval = 10 * time.Second

	writeAttempts = 4
	writePause    = time.Second

	firstPoll, lastPoll = 20 * time.Millisecond, 500 * time.Millisecond // for a lock
)

// statusTimeout limits the time to read a record for Status.
const statusTimeout = 5 * time.Second

// clusterRecord is a record in the store.
type clusterRecord struct {
	keys store.Keys
	name string // of the record and the lock
}

// clusterRecord returns the record in the store of the cluster. ok is false if the record is a file.
// It returns an error if the configuration names no store.
func (c Config) clusterRecord() (r clusterRecord, ok bool, err error) {
	if c.Kind != InCluster {
		return clusterRecord{}, false, nil
	}
	if c.Shared == nil {
		return clusterRecord{}, true, errors.New("tokens: token_store: cluster needs the store of a cluster; set store to nats://HOST:4222")
	}
	return clusterRecord{c.Shared, c.recordID()}, true, nil
}

// read returns the text of the record, and its version, store.Absent without a record.
func (r clusterRecord) read(ctx context.Context) ([]byte, store.Version, error) {
	entry, err := r.keys.Get(ctx, recordKeyPrefix+r.name)
	if toolerr.Is(err, toolerr.NotFound) {
		return nil, store.Absent, nil
	}
	return entry.Value, entry.Version, err
}

// replace stores the record if its version is still was, and otherwise returns CONFLICT. It tries
// again while the cluster does not answer, writeAttempts times: the text may have the only valid
// refresh token.
func (r clusterRecord) replace(ctx context.Context, text []byte, was store.Version) error {
	for attempt := 0; ; attempt++ {
		_, err := r.keys.Put(ctx, recordKeyPrefix+r.name, text, was, time.Time{})
		if attempt > 0 && toolerr.Is(err, toolerr.Conflict) { // an attempt whose answer was lost
			if now, _, readErr := r.read(ctx); readErr == nil && bytes.Equal(now, text) {
				return nil
			}
		}
		if attempt == writeAttempts-1 || !toolerr.Is(err, toolerr.TransportError) && !toolerr.Is(err, toolerr.Timeout) {
			return err
		}
		time.Sleep(writePause)
	}
}

// lock waits for the lock until ctx ends, and then returns an error. It renews the lock
// until unlock is called.
func (r clusterRecord) lock(ctx context.Context) (unlock func(), err error) {
	owner := []byte(rand.Text())
	var version store.Version
	for pause := firstPoll; ; pause = min(2*pause, lastPoll) {
		version, err = r.keys.Put(ctx, lockKeyPrefix+r.name, owner, store.Absent, time.Now().Add(leaseDuration))
		if !toolerr.Is(err, toolerr.Conflict) {
			break
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("another host has the lock of the sign-in: %w", context.Cause(ctx))
		case <-time.After(pause):
		}
	}
	if err != nil {
		return nil, err
	}
	stop, stopped := make(chan struct{}), make(chan store.Version)
	go func() { stopped <- r.extend(version, owner, stop) }()
	return func() {
		close(stop)
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), statusTimeout)
		defer cancel()
		r.keys.Delete(ctx, lockKeyPrefix+r.name, <-stopped) //nolint:errcheck // it expires
	}, nil
}

// extend extends the lock regularly until stop is closed, and returns its last version.
func (r clusterRecord) extend(version store.Version, owner []byte, stop <-chan struct{}) store.Version {
	tick := time.NewTicker(leaseRenewInterval)
	defer tick.Stop()
	for {
		select {
		case <-stop:
			return version
		case <-tick.C:
		}
		ctx, cancel := context.WithTimeout(context.Background(), leaseRenewInterval)
		if v, err := r.keys.Put(ctx, lockKeyPrefix+r.name, owner, version, time.Now().Add(leaseDuration)); err == nil {
			version = v
		}
		cancel()
	}
}

// clusterSubjects returns the subjects in the store that have a record of this server.
func (c Config) clusterSubjects(ctx context.Context) (subjects []string, err error) {
	for after := ""; ; {
		page, err := c.Shared.List(ctx, recordKeyPrefix, after, store.MaxPageEntries)
		if err != nil || len(page) == 0 {
			return subjects, err
		}
		for _, entry := range page {
			after = entry.Key
			var r record
			of := c
			if json.Unmarshal(entry.Value, &r) == nil {
				of.Subject = r.Subject
			}
			if of.Subject != "" && of.recordID() == strings.TrimPrefix(entry.Key, recordKeyPrefix) {
				subjects = append(subjects, of.Subject)
			}
		}
	}
}
