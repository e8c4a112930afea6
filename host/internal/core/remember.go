package core

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/toolroom-mcp/toolroom/host/internal/catalog"
	"github.com/toolroom-mcp/toolroom/host/internal/config"
	"github.com/toolroom-mcp/toolroom/host/internal/store"
	"github.com/toolroom-mcp/toolroom/host/internal/store/backend"
)

// openStore finds the store, which touches nothing before it is first used,
// and has definitions pinned in it.
func (a *App) openStore(cfg config.Config) error {
	if cfg.Store.URL == "" && cfg.Store.Dir == "" {
		return nil
	}
	s, err := backend.Open(cfg.Store)
	if err != nil {
		return err
	}
	a.store = s
	a.Catalog.OnDrift(func(e *catalog.ChangedError) {
		a.tell(e.Error() + "; mcp-host tools approve " + e.Name + " shows the difference")
	})
	a.setPins(cfg)
	a.openRepository(cfg)
	return nil
}

// TryStore reports why the store cannot be used; nil: it can.
func (a *App) TryStore(ctx context.Context) error {
	if a.store == nil {
		return errors.New("no state directory; give --state, or set HOME")
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	_, err := a.store.Keys.List(ctx, trimKey, "", 1)
	return err
}

func (a *App) setPins(cfg config.Config) {
	if a.store == nil {
		return
	}
	mode := cfg.Pins
	if mode == "" {
		mode = catalog.PinsWarn
	}
	a.Catalog.SetPins(mode, catalog.KeepPins(noted{a.store.Keys, &a.used}))
}

// noted notes that a store was used.
type noted struct {
	store.Keys
	used *atomic.Bool
}

func (n noted) List(ctx context.Context, prefix, after string, limit int) ([]store.Entry, error) {
	n.used.Store(true)
	return n.Keys.List(ctx, prefix, after, limit)
}

// What is done from time to time.
const (
	recheckPause = 2 * time.Second // whether withheld tools were approved elsewhere
	trimFirst    = 10 * time.Minute
	trimEvery    = time.Hour
	trimTime     = time.Minute // the longest it may take
)

// keep is what the store's logs and blobs are trimmed to.
func keep() (logs, blobs store.Keep) {
	return store.Keep{Age: 30 * 24 * time.Hour, Bytes: 256 << 20}, store.Keep{Age: 90 * 24 * time.Hour}
}

// tend does what is to be done from time to time, until the host ends.
func (a *App) tend() {
	recheck, trim := time.NewTicker(a.recheckEvery), time.NewTimer(trimFirst)
	defer recheck.Stop()
	defer trim.Stop()
	for {
		select {
		case <-a.life.Done():
			return
		case <-recheck.C:
			a.Catalog.Recheck(a.life)
		case <-trim.C:
			a.trim()
			trim.Reset(trimEvery)
		}
	}
}

// trimKey is there while a trim is not due: of several hosts one trims.
const trimKey = "trimmed"

// trim keeps the store from growing for ever. A host that has not used it
// leaves it alone.
func (a *App) trim() {
	if a.store == nil || !a.used.Load() {
		return
	}
	ctx, cancel := context.WithTimeout(a.life, trimTime)
	defer cancel()
	if _, err := a.store.Keys.Put(ctx, trimKey, []byte("1"), store.Absent, time.Now().Add(trimEvery)); err != nil {
		return // another host's turn, or nothing can be written now
	}
	logs, blobs := keep()
	_, err := a.store.Log.Trim(ctx, "*", logs)
	if err == nil {
		_, err = a.store.Blobs.Trim(ctx, blobs)
	}
	if err != nil && a.life.Err() == nil {
		a.tell("the store cannot be trimmed: " + err.Error())
	}
}
