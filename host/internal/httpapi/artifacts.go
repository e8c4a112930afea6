package httpapi

import (
	"encoding/json"
	"io"
	"mime"
	"net/http"
	"path"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/toolroom-mcp/toolroom/host/internal/store"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/jsonrpc"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// artifact is a stored file. Its content is the blob with the same id.
type artifact struct {
	ID      string    `json:"id"`
	Object  string    `json:"object"`
	Name    string    `json:"name"`
	Type    string    `json:"type"`
	Size    int64     `json:"size"`
	Created time.Time `json:"created"`
	Expires time.Time `json:"expires"`
}

// Limits of artifacts.
const (
	artifactLifetime = 90 * 24 * time.Hour // the lifetime of blobs
	maxArtifacts     = 10000
	maxFileName      = 200
)

// artifactKey returns the store key of an artifact.
func artifactKey(id string) string { return "artifact/" + id }

// createArtifact answers POST /artifact.
func (a *API) createArtifact(w http.ResponseWriter, r *http.Request) {
	made, err := a.storeArtifact(w, r)
	if err != nil {
		writeError(w, r, err)
		return
	}
	w.Header().Set("Location", "/artifact/"+made.ID)
	writeAnswer(w, http.StatusCreated, made)
}

// storeArtifact stores the body of a request as an artifact with its type and name. It
// returns TOO_LARGE above maxArtifact, and an error with status 507 if the store is
// full.
func (a *API) storeArtifact(w http.ResponseWriter, r *http.Request) (*artifact, error) {
	if r.ContentLength > maxArtifact {
		return nil, tooLarge(w, maxArtifact)
	}
	kind, err := contentType(r.Header.Get("Content-Type"))
	if err != nil {
		return nil, err
	}
	name := r.URL.Query().Get("name")
	if name == "" {
		if _, params, err := mime.ParseMediaType(r.Header.Get("Content-Disposition")); err == nil {
			name = params["filename"]
		}
	}
	setReadTimeout(w, artifactTimeout)
	now := a.cfg.Now().UTC()
	made := &artifact{ID: "artifact-" + randomText(), Object: "artifact", Name: safeFileName(name), Type: kind, Created: now, Expires: now.Add(artifactLifetime)}
	blob, err := a.cfg.Blobs.Create(r.Context(), made.ID, http.MaxBytesReader(w, r.Body, maxArtifact))
	switch {
	case toolerr.Is(err, toolerr.LimitReached), toolerr.Is(err, toolerr.NoSpace):
		return nil, &apiError{status: http.StatusInsufficientStorage, code: string(toolerr.CodeOf(err)), message: err.Error(), final: true}
	case err != nil && r.Context().Err() == nil:
		return nil, bodyError(w, err, maxArtifact)
	case err != nil:
		return nil, err
	}
	setReadTimeout(w, 0)
	made.Size = blob.Size
	value, err := jsonrpc.Marshal(made)
	if err == nil {
		_, err = a.cfg.Keys.Put(r.Context(), artifactKey(made.ID), value, store.Absent, made.Expires)
	}
	if err != nil {
		a.cfg.Blobs.Delete(r.Context(), made.ID) //nolint:errcheck // otherwise it expires
		return nil, err
	}
	return made, nil
}

// contentType returns the media type of a header Content-Type in the form in which it is stored,
// by default application/octet-stream. It returns INVALID_PARAMS for a malformed one.
func contentType(header string) (string, error) {
	if header == "" {
		return "application/octet-stream", nil
	}
	media, params, err := mime.ParseMediaType(header)
	if err != nil || len(header) > 200 || !strings.Contains(media, "/") {
		return "", toolerr.New(toolerr.InvalidParams, "Content-Type must be the media type of the file").With("param", "Content-Type")
	}
	return mime.FormatMediaType(media, params), nil
}

// safeFileName returns a name without directories, of at most maxFileName bytes, in which "_"
// replaces characters that are special for a terminal or a file system; "artifact" for an
// empty one.
func safeFileName(name string) string {
	name = path.Base("/" + strings.ReplaceAll(strings.ToValidUTF8(name, "_"), `\`, "/"))
	name = strings.Map(func(c rune) rune {
		if !unicode.IsPrint(c) || strings.ContainsRune(`<>:"/\|?*`, c) {
			return '_'
		}
		return c
	}, name)
	for len(name) > maxFileName {
		_, n := utf8.DecodeLastRuneInString(name)
		name = name[:len(name)-n]
	}
	if strings.Trim(name, "._ ") == "" {
		return "artifact"
	}
	return name
}

// findArtifact returns the artifact whose id is in the request's path, or NOT_FOUND.
// Each client of the API may read every artifact. An id that no key of the store can
// have is not looked up.
func (a *API) findArtifact(r *http.Request) (*artifact, error) {
	id := r.PathValue("id")
	missing := toolerr.New(toolerr.NotFound, "no artifact %.80q; GET /artifact lists the files", id)
	if len(id) > 64 || strings.ContainsFunc(id, func(c rune) bool { return c <= ' ' || c == '*' || c > '~' }) {
		return nil, missing
	}
	entry, err := a.cfg.Keys.Get(r.Context(), artifactKey(id))
	if toolerr.Is(err, toolerr.NotFound) {
		return nil, missing
	}
	if err != nil {
		return nil, err
	}
	kept := new(artifact)
	return kept, json.Unmarshal(entry.Value, kept)
}

// listArtifacts answers GET /artifact, with at most about maxArtifacts artifacts.
func (a *API) listArtifacts(w http.ResponseWriter, r *http.Request) {
	all := []artifact{}
	for after := ""; len(all) < maxArtifacts; {
		page, err := a.cfg.Keys.List(r.Context(), artifactKey(""), after, store.MaxPageEntries)
		if err != nil {
			writeError(w, r, err)
			return
		}
		if len(page) == 0 {
			break
		}
		for _, entry := range page {
			after = entry.Key
			var kept artifact
			if json.Unmarshal(entry.Value, &kept) == nil {
				all = append(all, kept)
			}
		}
	}
	writeAnswer(w, http.StatusOK, listOf(all))
}

// showArtifact answers GET and HEAD /artifact/{id} with the content of the artifact. The
// headers prevent that a browser shows it as a page of this host.
func (a *API) showArtifact(w http.ResponseWriter, r *http.Request) {
	kept, err := a.findArtifact(r)
	var content io.ReadCloser
	if err == nil {
		content, _, err = a.cfg.Blobs.Open(r.Context(), kept.ID)
	}
	if err != nil {
		writeError(w, r, err)
		return
	}
	defer content.Close() //nolint:errcheck // it was read
	h := w.Header()
	h.Set("Content-Type", kept.Type)
	h.Set("Content-Disposition", disposition(kept.Name))
	h.Set("Content-Security-Policy", "default-src 'none'; sandbox")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cache-Control", "private, no-store")
	if seeker, ok := content.(io.ReadSeeker); ok {
		http.ServeContent(w, r, "", kept.Created, seeker)
		return
	}
	h.Set("Content-Length", strconv.FormatInt(kept.Size, 10))
	if r.Method != http.MethodHead {
		io.Copy(w, content) //nolint:errcheck // the client is gone
	}
}

// disposition returns the value of Content-Disposition for saving a file under this name.
func disposition(name string) string {
	if text := mime.FormatMediaType("attachment", map[string]string{"filename": name}); text != "" {
		return text
	}
	return "attachment"
}

// deleteArtifact answers DELETE /artifact/{id}: it deletes the artifact and its content.
func (a *API) deleteArtifact(w http.ResponseWriter, r *http.Request) {
	kept, err := a.findArtifact(r)
	if err == nil {
		err = a.cfg.Keys.Delete(r.Context(), artifactKey(kept.ID), store.Any)
	}
	if err == nil {
		if err = a.cfg.Blobs.Delete(r.Context(), kept.ID); toolerr.Is(err, toolerr.NotFound) {
			err = nil
		}
	}
	if err != nil {
		writeError(w, r, err)
		return
	}
	writeAnswer(w, http.StatusOK, deletedObject{kept.ID, "artifact.deleted", true})
}
