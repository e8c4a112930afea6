package jetstream

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	js "github.com/nats-io/nats.go/jetstream"

	"github.com/toolroom-mcp/toolroom/host/internal/store"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

const (
	chunkSize = 512 << 10 // bytes of one message of a content
	// abandonedAge is the age from which content without a blob is removed.
	abandonedAge = time.Hour
)

// blobs is the store.Blobs of a cluster.
type blobs cluster

// blobInfo is the content of the message NAME.blob.ID: it names the upload that has the
// blob's content.
type blobInfo struct {
	Upload  string `json:"upload"`
	Size    int64  `json:"size"`
	Created int64  `json:"created"` // Unix milliseconds
}

// blob returns the store's description of the blob with this id.
func (d blobInfo) blob(id string) store.Blob {
	return store.Blob{ID: id, Size: d.Size, Created: time.UnixMilli(d.Created)}
}

// chunkSubject returns the subject of chunk n, from 0, of an upload.
func (c *cluster) chunkSubject(upload string, n int64) string {
	return fmt.Sprintf("%s.chunk.%s.%d", c.Name, upload, n)
}

// Create implements store.Blobs: it uploads the content under a separate name, and then
// makes it the blob, unless the blob exists.
func (b *blobs) Create(ctx context.Context, id string, r io.Reader) (store.Blob, error) {
	c := (*cluster)(b)
	s, err := c.open(ctx)
	if err != nil {
		return store.Blob{}, err
	}
	if _, err := b.Stat(ctx, id); err == nil {
		return store.Blob{}, store.ExistsError(id)
	} else if !toolerr.Is(err, toolerr.NotFound) {
		return store.Blob{}, err
	}
	d := blobInfo{Upload: rand.Text()}
	err = c.upload(ctx, s, &d, r)
	if err == nil {
		d.Created = c.Now().UnixMilli()
		err = c.publishBlob(ctx, s, id, d)
	}
	if err != nil {
		c.discardUpload(ctx, s, d.Upload)
		return store.Blob{}, err
	}
	return d.blob(id), nil
}

// upload writes the chunks of a blob and sets d.Size. It returns TOO_LARGE above the
// quota of one blob.
func (c *cluster) upload(ctx context.Context, s *streams, d *blobInfo, r io.Reader) error {
	r = c.Quota.CapReader(r)
	buf := make([]byte, chunkSize)
	for i := int64(0); ; i++ {
		n, err := io.ReadFull(r, buf)
		d.Size += int64(n)
		end := errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
		if err != nil && !end {
			return err
		}
		if n > 0 {
			if _, err := s.js.Publish(ctx, c.chunkSubject(d.Upload, i), buf[:n], js.WithExpectStream(c.Name+"-chunk")); err != nil {
				return c.explain(ctx, err)
			}
		}
		if end {
			return nil
		}
	}
}

// publishBlob makes an upload the content of the blob id. It returns EXISTS if there is
// such a blob, and an error if all blobs would exceed the quota. No other blob may change
// between the check and the publication; then it checks again.
func (c *cluster) publishBlob(ctx context.Context, s *streams, id string, d blobInfo) error {
	data, err := json.Marshal(d)
	if err != nil {
		return err
	}
	filter := c.Name + ".blob.>"
	for {
		_, seq, _, err := c.lastMessage(ctx, s, filter)
		if err != nil {
			return err
		}
		all, err := c.listBlobs(ctx, s)
		if err != nil {
			return err
		}
		if _, ok := all[id]; ok {
			return store.ExistsError(id)
		}
		total := d.Size
		for _, other := range all {
			total += other.Size
		}
		if total > c.Quota.Total {
			return c.Quota.ExceededError()
		}
		m := nats.NewMsg(c.Name + ".blob." + id)
		m.Data = data
		_, err = s.js.PublishMsg(ctx, m, js.WithExpectStream(c.Name+"-keys"), js.WithExpectLastSequenceForSubject(seq, filter))
		if !isWrongSequence(err) {
			return c.explain(ctx, err)
		}
	}
}

// listBlobs returns all blobs by id.
func (c *cluster) listBlobs(ctx context.Context, s *streams) (map[string]blobInfo, error) {
	all := map[string]blobInfo{}
	prefix := c.Name + ".blob."
	err := visitMessages(ctx, s.keys, prefix+">", 1, false, func(m js.Msg, _ uint64) bool {
		id := strings.TrimPrefix(m.Subject(), prefix)
		var d blobInfo
		delete(all, id)
		if c.isLive(m.Headers()) && json.Unmarshal(m.Data(), &d) == nil {
			all[id] = d
		}
		return true
	})
	return all, c.explain(ctx, err)
}

// discardUpload removes the content of an upload, within requestTimeout, even if ctx has
// ended. If the cluster cannot be reached, Trim removes it later.
func (c *cluster) discardUpload(ctx context.Context, s *streams, upload string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), requestTimeout)
	defer cancel()
	_ = s.chunk.Purge(ctx, js.WithPurgeSubject(c.Name+".chunk."+upload+".>"))
}

// findBlob returns a blob's description and version, or NOT_FOUND.
func (c *cluster) findBlob(ctx context.Context, s *streams, id string) (blobInfo, store.Version, error) {
	m, seq, live, err := c.lastMessage(ctx, s, c.Name+".blob."+id)
	var d blobInfo
	switch {
	case err != nil:
		return d, 0, err
	case !live:
		return d, 0, store.NotFoundError("blob " + id)
	}
	return d, store.Version(seq), json.Unmarshal(m.Data, &d)
}

// Stat implements store.Blobs.
func (b *blobs) Stat(ctx context.Context, id string) (store.Blob, error) {
	c := (*cluster)(b)
	s, err := c.open(ctx)
	if err != nil {
		return store.Blob{}, err
	}
	d, _, err := c.findBlob(ctx, s, id)
	if err != nil {
		return store.Blob{}, err
	}
	return d.blob(id), nil
}

// Open implements store.Blobs.
func (b *blobs) Open(ctx context.Context, id string) (io.ReadCloser, store.Blob, error) {
	c := (*cluster)(b)
	s, err := c.open(ctx)
	if err != nil {
		return nil, store.Blob{}, err
	}
	d, _, err := c.findBlob(ctx, s, id)
	if err != nil {
		return nil, store.Blob{}, err
	}
	return &blobReader{ctx: ctx, c: c, s: s, id: id, blobInfo: d}, d.blob(id), nil
}

// blobReader reads the content of a blob, one chunk at a time.
type blobReader struct {
	ctx  context.Context // context of Open, whose caller reads
	c    *cluster
	s    *streams
	id   string
	next int64  // number of the next chunk
	rest []byte // unread bytes of the last chunk
	blobInfo
}

// Read reads the next bytes. It returns NOT_FOUND if the blob was deleted meanwhile.
func (r *blobReader) Read(p []byte) (int, error) {
	if len(r.rest) == 0 {
		if r.next*chunkSize >= r.Size {
			return 0, io.EOF
		}
		m, err := r.s.chunk.GetLastMsgForSubject(r.ctx, r.c.chunkSubject(r.Upload, r.next))
		if errors.Is(err, js.ErrMsgNotFound) {
			return 0, toolerr.New(toolerr.NotFound, "blob %s was deleted while it was read", r.id)
		}
		if err != nil {
			return 0, r.c.explain(r.ctx, err)
		}
		r.rest = m.Data
		r.next++
	}
	n := copy(p, r.rest)
	r.rest = r.rest[n:]
	return n, nil
}

// Close implements io.Closer; the reader holds nothing open.
func (r *blobReader) Close() error { return nil }

// Delete implements store.Blobs.
func (b *blobs) Delete(ctx context.Context, id string) error {
	c := (*cluster)(b)
	s, err := c.open(ctx)
	if err != nil {
		return err
	}
	d, version, err := c.findBlob(ctx, s, id)
	if err != nil {
		return err
	}
	if err := c.deleteIfVersion(ctx, c.Name+".blob."+id, id, version); err != nil {
		if toolerr.Is(err, toolerr.Conflict) { // another process has deleted it
			return store.NotFoundError("blob " + id)
		}
		return err
	}
	c.discardUpload(ctx, s, d.Upload)
	return nil
}

// Trim implements store.Blobs.
func (b *blobs) Trim(ctx context.Context, keep store.Retention) (int, error) {
	c := (*cluster)(b)
	s, err := c.open(ctx)
	if err != nil {
		return 0, err
	}
	old := map[string]bool{} // old uploads; recent ones may become blobs soon
	err = visitMessages(ctx, s.chunk, c.Name+".chunk.>", 1, true, func(m js.Msg, _ uint64) bool {
		meta, err := m.Metadata()
		upload, _, ok := strings.Cut(strings.TrimPrefix(m.Subject(), c.Name+".chunk."), ".")
		if err == nil && ok && time.Since(meta.Timestamp) > abandonedAge {
			old[upload] = true
		}
		return true
	})
	if err != nil {
		return 0, c.explain(ctx, err)
	}
	described, err := c.listBlobs(ctx, s)
	if err != nil {
		return 0, err
	}
	var all []store.Blob
	for id, d := range described {
		delete(old, d.Upload)
		all = append(all, d.blob(id))
	}
	for upload := range old {
		c.discardUpload(ctx, s, upload)
	}
	removed := 0
	for _, one := range keep.BlobsToRemove(all, c.Now()) {
		switch err := b.Delete(ctx, one.ID); {
		case err == nil:
			removed++
		case !toolerr.Is(err, toolerr.NotFound):
			return removed, err
		}
	}
	return removed, nil
}
