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
	"github.com/toolroom-mcp/toolroom/host/internal/upstream/oauth"
)

// openStore opens the store, which reads and writes nothing before its first use. Without a
// URL and a state directory, a.store stays nil. The error names an invalid setting of the store.
func (a *App) openStore(cfg config.Config) (err error) {
	if cfg.Store.URL == "" && cfg.Store.Dir == "" {
		return nil
	}
	a.store, err = backend.Open(cfg.Store)
	return err
}

// connectStore connects the catalog to the store: tool pins and declared tools.
func (a *App) connectStore(cfg config.Config) {
	if a.store == nil {
		return
	}
	a.Catalog.OnDrift(func(e *catalog.ChangedError) {
		a.notify(e.Error() + "; mcp-host tools approve " + e.Name + " shows the difference")
	})
	a.configurePins(cfg)
	a.openStoredTools(cfg)
}

// tokenStorage tells where the tokens of sign-ins are stored.
func (a *App) tokenStorage() oauth.Storage {
	storage := a.Config.TokenStorage()
	storage.Refreshes = &a.refreshes
	if a.store != nil && a.Config.Store.IsCluster() {
		storage.Shared = a.store.Keys
	}
	return storage
}

// TryStore reads from the store, and returns an error if that fails within 10 seconds or
// there is no store.
func (a *App) TryStore(ctx context.Context) error {
	if a.store == nil {
		return errors.New("no state directory; give --state, or set HOME")
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	_, err := a.store.Keys.List(ctx, trimKey, "", 1)
	return err
}

// configurePins sets whether the catalog compares definitions with their pins, and whether
// it withholds changed tools (tool_pins). Without a store it compares nothing.
func (a *App) configurePins(cfg config.Config) {
	if a.store == nil {
		return
	}
	mode := cfg.Pins
	if mode == "" {
		mode = catalog.PinsWarn
	}
	a.Catalog.SetPins(mode, catalog.NewPinStore(useRecordingKeys{a.store.Keys, &a.storeUsed}))
}

// useRecordingKeys records that the store was used.
type useRecordingKeys struct {
	store.Keys
	used *atomic.Bool
}

// List is Keys.List, and records that the store was used.
func (n useRecordingKeys) List(ctx context.Context, prefix, after string, limit int) ([]store.Entry, error) {
	n.used.Store(true)
	return n.Keys.List(ctx, prefix, after, limit)
}

// Intervals of maintenance.
const (
	pinRecheckInterval = 2 * time.Second // for checks whether withheld tools were approved by another host
	firstTrimDelay     = 10 * time.Minute
	trimInterval       = time.Hour
	trimTimeout        = time.Minute // limit of one trim
)

// retention returns how much of the store's logs and blobs a trim keeps.
func retention() (logs, blobs store.Retention) {
	return store.Retention{Age: 30 * 24 * time.Hour, Bytes: 256 << 20}, store.Retention{Age: 90 * 24 * time.Hour}
}

// runMaintenance trims the store and rechecks withheld tools at intervals until the host
// closes.
func (a *App) runMaintenance() {
	recheck, trim := time.NewTicker(a.recheckEvery), time.NewTimer(firstTrimDelay)
	defer recheck.Stop()
	defer trim.Stop()
	for {
		select {
		case <-a.life.Done():
			return
		case <-recheck.C:
			a.Catalog.RelistApproved(a.life)
		case <-trim.C:
			a.trim()
			trim.Reset(trimInterval)
		}
	}
}

// trimKey exists until the next trim is due, so that only one of several hosts trims.
const trimKey = "trimmed"

// trim removes the oldest logs and blobs of the store beyond the limits of retention,
// unless another host did it within trimInterval. A host that has not used the store does not
// trim it.
func (a *App) trim() {
	if a.store == nil || !a.storeUsed.Load() {
		return
	}
	ctx, cancel := context.WithTimeout(a.life, trimTimeout)
	defer cancel()
	if _, err := a.store.Keys.Put(ctx, trimKey, []byte("1"), store.Absent, time.Now().Add(trimInterval)); err != nil {
		return // another host trims, or the store cannot be written
	}
	logs, blobs := retention()
	_, err := a.store.Log.Trim(ctx, "*", logs)
	if err == nil {
		_, err = a.store.Blobs.Trim(ctx, blobs)
	}
	if err != nil && a.life.Err() == nil {
		a.notify("the store cannot be trimmed: " + err.Error())
	}
}
