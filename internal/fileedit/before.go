package fileedit

import (
	"context"
	"time"

	"github.com/toolroom-mcp/toolroom/internal/state"
	"github.com/toolroom-mcp/toolroom/internal/textfile"
	"github.com/toolroom-mcp/toolroom/pkg/sandbox"
)

// Before is the current version of a file, as read under the lock.
type Before struct {
	Path    string // absolute, links resolved
	Shown   string // as shown; accepted as a path
	Exists  bool
	Masked  bool         // its values must not be shown: secret.Mask
	Content []byte       // must not be changed
	Stat    sandbox.Stat // if the file exists
	Etag    textfile.Etag
	Index   textfile.Index // of Content, with its Etag
	Seen    *state.Seen    // the version, of any age, that the model saw last; nil: unknown
	Parents []string       // missing parent directories, as shown
}

// IsSeenVersion reports whether the file still is the version that the model
// saw last. It compares the content, except that it compares only size and
// times of a masked file: comparing its content would tell a model that wrote
// one version whether the file still has it.
func (b *Before) IsSeenVersion() bool {
	if b.Masked {
		return b.Exists && b.Seen != nil && b.Seen.Stamp.SameVersion(state.StampOf(b.Stat, time.Time{}))
	}
	return b.Exists && b.Seen != nil && b.Seen.Index.Etag == b.Etag && b.Seen.Index.Size == int64(len(b.Content))
}

// IndexIn returns the index of the file, read in an encoding: in named or, if
// named is "", in the encoding that the client named when it saw this version,
// or else in the detected one. encodingNamed reports that the encoding was
// named instead of detected. A masked file is always read in the detected
// encoding: another one could make its values look like names. The error is
// that of ctx.
func (b *Before) IndexIn(ctx context.Context, named textfile.Encoding) (index textfile.Index, encodingNamed bool, err error) {
	if named == "" && b.IsSeenVersion() {
		named = b.Seen.NamedEncoding
	}
	if named == "" || !b.Exists || b.Masked || b.Index.NUL > 0 && !named.IsUTF16() {
		return b.Index, false, nil
	}
	read, err := textfile.Scan(ctx, Whole(b.Content), int64(len(b.Content)), textfile.Options{Encoding: named, KeepFacts: true})
	if err != nil {
		return b.Index, false, err
	}
	return *read, true, nil
}
