package declared

import (
	"context"
	"time"

	"github.com/toolroom-mcp/toolroom/host/internal/config/dialect"
	"github.com/toolroom-mcp/toolroom/host/internal/declared/manifest"
	"github.com/toolroom-mcp/toolroom/host/internal/store"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// Stored accesses the declared tools in the store: those registered while a host ran.
// Tools of files and directories belong to the configuration. A manifest is stored as
// given, and read with the variables of the host that reads it.
type Stored struct {
	Keys    store.Keys
	Options manifest.Options

	// Exists reports whether the store exists; an unused store is not created.
	Exists func() bool
}

// keyPrefix is the prefix of the keys of manifests, before the served name.
const keyPrefix = "tool/"

// stateKey is the key of a value that changes with the stored tools.
const stateKey = "tools/state"

// maxTools bounds the registered tools.
const maxTools = 10_000

// Put stores the tools of a manifest, replaces those with the same names, and returns them.
// file names the manifest in errors. If a tool is wrong, no tool is stored.
func (s Stored) Put(ctx context.Context, file string, text []byte) ([]manifest.Tool, error) {
	tools, texts, err := manifest.ReadStored(file, text, s.Options)
	if err != nil {
		return nil, err
	}
	for i, t := range tools {
		if _, err := s.Keys.Put(ctx, keyPrefix+ServedName(t), texts[i], store.Any, time.Time{}); err != nil {
			return nil, err
		}
	}
	return tools, s.changeState(ctx)
}

// changeState changes the version that State returns, so that other hosts notice that the
// stored tools have changed.
func (s Stored) changeState(ctx context.Context) error {
	_, err := s.Keys.Put(ctx, stateKey, nil, store.Any, time.Time{})
	return err
}

// State returns a version that changes with the stored tools; store.Absent: nothing was
// stored.
func (s Stored) State(ctx context.Context) (store.Version, error) {
	if !s.Exists() {
		return store.Absent, nil
	}
	entry, err := s.Keys.Get(ctx, stateKey)
	if toolerr.Is(err, toolerr.NotFound) { // nothing was stored, or only by a version without this key
		return store.Absent, nil
	}
	return entry.Version, err
}

// Delete removes a tool by its served name, or returns NOT_FOUND.
func (s Stored) Delete(ctx context.Context, name string) error {
	if !s.Exists() {
		return store.NotFoundError(name)
	}
	if _, err := s.Keys.Get(ctx, keyPrefix+name); err != nil {
		return err
	}
	if err := s.Keys.Delete(ctx, keyPrefix+name, store.Any); err != nil {
		return err
	}
	return s.changeState(ctx)
}

// Get returns the tool with a served name, or NOT_FOUND.
func (s Stored) Get(ctx context.Context, name string) (manifest.Tool, error) {
	if !s.Exists() {
		return manifest.Tool{}, store.NotFoundError(name)
	}
	entry, err := s.Keys.Get(ctx, keyPrefix+name)
	if err != nil {
		return manifest.Tool{}, err
	}
	return s.read(entry)
}

// List returns the tools, at most about maxTools, and the errors of those that cannot be
// used. err means that the store could not be read.
func (s Stored) List(ctx context.Context) (tools []manifest.Tool, wrong []error, err error) {
	if !s.Exists() {
		return nil, nil, nil
	}
	for after := ""; len(tools) < maxTools; {
		page, err := s.Keys.List(ctx, keyPrefix, after, maxTools)
		if err != nil {
			return nil, nil, err
		}
		if len(page) == 0 {
			break
		}
		for _, entry := range page {
			t, err := s.read(entry)
			if err != nil {
				wrong = append(wrong, err)
				continue
			}
			tools = append(tools, t)
		}
		after = page[len(page)-1].Key
	}
	return tools, wrong, nil
}

// read returns the tool of a store entry. It returns INVALID_INPUT if the entry holds
// not exactly the tool that its key names.
func (s Stored) read(entry store.Entry) (manifest.Tool, error) {
	tools, _, err := manifest.ReadStored("the store, "+entry.Key, entry.Value, s.Options)
	switch {
	case err != nil:
		return manifest.Tool{}, err
	case len(tools) != 1 || keyPrefix+ServedName(tools[0]) != entry.Key:
		return manifest.Tool{}, toolerr.New(toolerr.InvalidInput, "the store, %s: is not the manifest of that tool", dialect.ShownName(entry.Key))
	}
	return tools[0], nil
}
