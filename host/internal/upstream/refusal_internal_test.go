package upstream

import (
	"errors"
	"net/http"
	"net/url"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

func TestARefusalSaysWhenToTryAgain(t *testing.T) {
	r := &remote{cfg: Config{Name: "s"}, base: &url.URL{Scheme: "https", Host: "example.com"}}
	for _, c := range []struct {
		status int
		after  string
		code   toolerr.Code
		want   any
	}{
		{429, "7", toolerr.RateLimited, int64(7000)},
		{429, "", toolerr.RateLimited, nil},
		{429, "Wed, 21 Oct 2015 07:28:00 GMT", toolerr.RateLimited, nil}, // it is time
		{429, "Fri, 31 Dec 9999 23:59:59 GMT", toolerr.RateLimited, "some"},
		{503, "120", toolerr.TransportError, int64(120_000)},
		{404, "", toolerr.TransportError, nil},
	} {
		err := r.statusError(&http.Response{StatusCode: c.status, Header: http.Header{"Retry-After": {c.after}}}, nil)
		require.Equal(t, c.code, toolerr.CodeOf(err))
		var said *toolerr.Error
		require.ErrorAs(t, err, &said)
		if c.want == "some" {
			require.NotNil(t, said.Extra()["retryAfterMs"])
		} else {
			require.Equal(t, c.want, said.Extra()["retryAfterMs"], "%+v", c)
		}
		var status interface{ StatusCode() int }
		if errors.As(err, &status) {
			require.Equal(t, c.status, status.StatusCode())
		} else {
			require.Equal(t, 429, c.status)
		}
	}
}
