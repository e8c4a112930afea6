package jetstream_test

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	js "github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/host/internal/store"
	"github.com/toolroom-mcp/toolroom/host/internal/store/jetstream"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

func put(ctx context.Context, s *store.Store, key string) error {
	_, err := s.Keys.Put(ctx, key, []byte("v"), store.Any, time.Time{})
	return err
}

// admin is a connection past the store.
func admin(t *testing.T, url string) js.JetStream {
	t.Helper()
	conn, err := nats.Connect(url)
	require.NoError(t, err)
	t.Cleanup(conn.Close)
	j, err := js.New(conn)
	require.NoError(t, err)
	return j
}

func TestOtherStreamsAreRefused(t *testing.T) {
	s := serve(t, nil)
	j := admin(t, s.ClientURL())
	for name, metadata := range map[string]map[string]string{
		"newer": {"toolroom_schema": "2"}, "theirs": nil, "odd": {"toolroom_schema": "x"},
	} {
		_, err := j.CreateStream(t.Context(), js.StreamConfig{Name: name + "-log", Subjects: []string{name + ".log.>"}, Metadata: metadata})
		require.NoError(t, err)
		st := jetstream.New(jetstream.Config{URL: s.ClientURL(), Name: name})
		err = put(t.Context(), st, "k")
		require.Error(t, err)
		require.Equal(t, name == "newer", errors.Is(err, store.ErrNewer), "%v", err)
		require.Contains(t, err.Error(), name+"-log")
		require.NoError(t, st.Close())
	}
}

// Streams stay within their bounds, and say so.
func TestBound(t *testing.T) {
	s := serve(t, nil)
	st := jetstream.New(jetstream.Config{URL: s.ClientURL(), MaxBytes: 2 << 20})
	defer st.Close()
	data := bytes.Repeat([]byte("x"), 512<<10)
	var err error
	for n := 0; err == nil; n++ {
		require.Less(t, n, 10)
		_, err = st.Log.Append(t.Context(), "log", data)
	}
	require.Equal(t, toolerr.NoSpace, toolerr.CodeOf(err), "%v", err)
	require.NoError(t, put(t.Context(), st, "k"), "keys have their own")
	_, err = st.Log.Trim(t.Context(), "*", store.Retention{Bytes: 1 << 20})
	require.NoError(t, err)
	_, err = st.Log.Append(t.Context(), "log", data)
	require.NoError(t, err)
}

// A server that goes is said to have gone, and when it comes back the same
// store goes on with what was there.
func TestServerComesBack(t *testing.T) {
	dir := t.TempDir()
	s := serve(t, func(o *server.Options) { o.StoreDir = dir })
	st := jetstream.New(jetstream.Config{URL: s.ClientURL()})
	defer st.Close()
	c, err := st.Log.Append(t.Context(), "log", []byte("a"))
	require.NoError(t, err)
	_, err = st.Blobs.Create(t.Context(), "blob", strings.NewReader("content"))
	require.NoError(t, err)
	port := s.Addr().String()
	s.Shutdown()
	s.WaitForShutdown()
	require.Equal(t, toolerr.TransportError, toolerr.CodeOf(put(t.Context(), st, "k")))

	host, number, _ := strings.Cut(port, ":")
	again := serve(t, func(o *server.Options) {
		o.Host, o.StoreDir = host, dir
		o.Port = 0
		for _, digit := range number {
			o.Port = o.Port*10 + int(digit-'0')
		}
	})
	require.Equal(t, port, again.Addr().String())
	require.Eventually(t, func() bool { return put(t.Context(), st, "k") == nil }, 30*time.Second, 20*time.Millisecond)
	records, err := st.Log.Read(t.Context(), "log", 0, 10)
	require.NoError(t, err)
	require.Len(t, records, 1)
	require.Equal(t, c, records[0].Cursor)
	b, err := st.Blobs.Stat(t.Context(), "blob")
	require.NoError(t, err)
	require.EqualValues(t, 7, b.Size)
}

func TestWhatIsWrongIsSaid(t *testing.T) {
	secured := serve(t, func(o *server.Options) { o.Authorization = "right" })
	plain := serve(t, func(o *server.Options) { o.JetStream = false })
	for _, test := range []struct {
		config jetstream.Config
		code   toolerr.Code
		says   string
	}{
		{jetstream.Config{URL: secured.ClientURL(), Token: "wrong"}, toolerr.AuthFailed, "refused"},
		{jetstream.Config{URL: secured.ClientURL(), Token: "right"}, "", ""},
		{jetstream.Config{URL: plain.ClientURL()}, toolerr.TransportError, "JetStream"},
		{jetstream.Config{URL: "nats://u:wrong@127.0.0.1:1, nats://wrong@127.0.0.1:2"}, toolerr.TransportError, "127.0.0.1:2"},
	} {
		st := jetstream.New(test.config)
		err := put(t.Context(), st, "k")
		require.Equal(t, test.code, toolerr.CodeOf(err), "%v", err)
		if test.says != "" {
			require.ErrorContains(t, err, test.says)
			require.NotContains(t, err.Error(), "wrong@")
		}
		require.NoError(t, st.Close())
	}
}

// What deleted and lost blobs had is removed from the cluster.
func TestNoContentIsLeft(t *testing.T) {
	s := serve(t, nil)
	st := jetstream.New(jetstream.Config{URL: s.ClientURL(), Quota: store.Quota{Blob: 1 << 20}})
	defer st.Close()
	_, err := st.Blobs.Create(t.Context(), "a", bytes.NewReader(make([]byte, 600<<10)))
	require.NoError(t, err)
	_, err = st.Blobs.Create(t.Context(), "b", bytes.NewReader(make([]byte, 2<<20)))
	require.Equal(t, toolerr.TooLarge, toolerr.CodeOf(err))
	stream, err := admin(t, s.ClientURL()).Stream(t.Context(), "toolroom-chunk")
	require.NoError(t, err)
	require.EqualValues(t, 2, stream.CachedInfo().State.Msgs)
	require.NoError(t, st.Blobs.Delete(t.Context(), "a"))
	info, err := stream.Info(t.Context())
	require.NoError(t, err)
	require.Zero(t, info.State.Msgs)
}
