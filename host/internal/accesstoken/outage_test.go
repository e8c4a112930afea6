package accesstoken_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/stretchr/testify/require"
	"github.com/toolroom-mcp/toolroom/host/internal/accesstoken"
)

// silent sends no answer to any request until the request ends.
type silent struct{}

func (silent) RoundTrip(r *http.Request) (*http.Response, error) {
	<-r.Context().Done()
	return nil, r.Context().Err()
}

// anyJWT has the form of a token.
const anyJWT = "eyJhbGciOiJFUzI1NiJ9.e30.AAAA"

// A request that has ended does not wait for an issuer that does not answer, even while another request
// waits for it.
func TestSilentIssuerAndRequestThatHasEnded(t *testing.T) {
	t.Parallel()
	arrived, release := make(chan struct{}, 10), make(chan struct{})
	s := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		arrived <- struct{}{}
		<-release
	}))
	defer s.Close()
	defer close(release)
	v, err := accesstoken.New(accesstoken.Config{Issuer: s.URL, URL: here})
	require.NoError(t, err)
	first, endFirst := context.WithCancel(t.Context())
	waits := make(chan error, 1)
	go func() {
		_, err := v.Verify(first, anyJWT)
		waits <- err
	}()
	<-arrived
	ended, end := context.WithCancel(t.Context())
	end()
	_, err = v.Verify(ended, anyJWT)
	require.ErrorIs(t, err, context.Canceled)
	endFirst()
	require.ErrorIs(t, <-waits, context.Canceled)

	check, endCheck := context.WithCancel(t.Context())
	go func() { waits <- v.CheckIssuer(check) }()
	<-arrived
	endCheck()
	require.ErrorIs(t, <-waits, context.Canceled)
}

// A silent issuer delays a request by ten seconds, the check of the issuer by five, and the next request
// waits for the same answer.
func TestSilentIssuer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var reports []string
		v, err := accesstoken.New(accesstoken.Config{
			Issuer: "https://login.example.com/team", URL: here, Client: &http.Client{Transport: silent{}},
			Report: func(err error) { reports = append(reports, fmt.Sprint(err)) },
		})
		require.NoError(t, err)
		begin := time.Now()
		require.ErrorContains(t, v.CheckIssuer(t.Context()), "https://login.example.com/team")
		require.Equal(t, 5*time.Second, time.Since(begin))

		begin = time.Now()
		_, err = v.Verify(t.Context(), anyJWT)
		require.ErrorContains(t, err, "has not answered")
		require.Equal(t, 10*time.Second, time.Since(begin))
		_, err = v.Verify(t.Context(), anyJWT)
		require.ErrorContains(t, err, "has not answered")
		require.Equal(t, 20*time.Second, time.Since(begin), "after this time the host gives up")
		synctest.Wait()
		_, err = v.Verify(t.Context(), anyJWT)
		require.ErrorContains(t, err, "has no metadata")
		require.Equal(t, 20*time.Second, time.Since(begin))
		require.Len(t, reports, 1)
		require.NotContains(t, reports[0], "\n")
	})
}

// A silent address does not use up the time for the second one.
func TestCheckOfAnIssuerWithOneSilentAddress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v, err := accesstoken.New(accesstoken.Config{Issuer: "https://login.example.com", URL: here, Client: &http.Client{Transport: answers(func(path string) (int, string) {
			switch path {
			case "/.well-known/openid-configuration":
				return http.StatusOK, `{"issuer":"https://login.example.com","jwks_uri":"https://login.example.com/keys"}`
			case "/keys":
				return http.StatusOK, `{"keys":[{}]}`
			default:
				return 0, ""
			}
		})}})
		require.NoError(t, err)
		require.NoError(t, v.CheckIssuer(t.Context()))
	})
}

// answers returns the status and text for a path; status 0: none.
type answers func(path string) (int, string)

func (a answers) RoundTrip(r *http.Request) (*http.Response, error) {
	status, text := a(r.URL.Path)
	if status == 0 {
		return silent{}.RoundTrip(r)
	}
	w := httptest.NewRecorder()
	w.WriteHeader(status)
	w.WriteString(text) //nolint:errcheck // a recorder
	return w.Result(), nil
}

// The check of the issuer requests the keys.
func TestCheckOfKeys(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	v, _ := s.verifier(t, nil)
	require.ErrorContains(t, v.CheckIssuer(t.Context()), "no keys")
	s.newKey(t, "1")
	require.NoError(t, v.CheckIssuer(t.Context()))
	s.set(func() { s.metadata["jwks_uri"] = s.URL + "/missing" })
	require.ErrorContains(t, v.CheckIssuer(t.Context()), "the issuer's keys cannot be read: "+s.URL+"/missing answered with status 404")
	s.set(func() { s.metadata["jwks_uri"] = "http://127.0.0.1:1/keys" })
	require.ErrorContains(t, v.CheckIssuer(t.Context()), "the issuer's keys cannot be read")
}

// The reasons of an outage are reported at most once in a pause that grows to ten minutes, whatever they are,
// and its end is reported once.
func TestReportsOfAnOutage(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	k := s.newKey(t, "1")
	var reports []string
	v, clock := s.verifier(t, func(c *accesstoken.Config) { c.Report = func(err error) { reports = append(reports, fmt.Sprint(err)) } })
	second := 0
	after := func(seconds int, issuer string) (added []string) {
		second += seconds
		later := now.Add(time.Duration(second) * time.Second)
		clock.Store(&later)
		s.set(func() { s.metadata["issuer"] = issuer })
		reports = nil
		claims := s.claims(map[string]any{"exp": later.Add(time.Hour).Unix()})
		_, err := v.Verify(t.Context(), k.sign(t, claims))
		require.Equal(t, issuer != s.URL, err != nil, err)
		return reports
	}
	var seconds []int
	for n := range 1000 { // two hours; each reason differs from the last one
		if added := after(7, fmt.Sprintf("https://%d.example", n%2)); len(added) > 0 {
			require.Len(t, added, 1)
			seconds = append(seconds, second)
		}
	}
	require.Less(t, len(seconds), 22, seconds)
	require.Greater(t, len(seconds), 8, seconds)
	pauses := make([]int, 0, len(seconds))
	for i, s := range seconds[1:] {
		pauses = append(pauses, s-seconds[i])
	}
	require.True(t, slices.IsSorted(pauses), pauses)

	require.Equal(t, []string{"<nil>"}, after(7, s.URL), "users can sign in again")
	require.Empty(t, after(7, s.URL))
	failed := func(t *testing.T, seconds int, status int) []string {
		s.set(func() {
			s.broken = func(w http.ResponseWriter, _ *http.Request) {
				if status != http.StatusOK {
					w.WriteHeader(status)
					return
				}
				json.NewEncoder(w).Encode(jose.JSONWebKeySet{Keys: s.keys}) //nolint:errcheck // the test fails then
			}
		})
		second += seconds
		later := now.Add(time.Duration(second) * time.Second)
		clock.Store(&later)
		reports = nil
		other := key{fmt.Sprint("key ", second), k.private} // which the verifier does not know yet
		if status == http.StatusOK {
			other = k
		}
		_, err := v.Verify(t.Context(), other.sign(t, s.claims(map[string]any{"exp": later.Add(time.Hour).Unix()})))
		require.Equal(t, status != http.StatusOK, err != nil, err)
		return reports
	}
	for range 3 { // the same reason after the end of an outage is reported again
		got := failed(t, 3600, http.StatusTeapot)
		require.Len(t, got, 1)
		require.Contains(t, got[0], "the issuer's keys cannot be read")
		require.Empty(t, failed(t, 3600, http.StatusTeapot), "the same reason")
		require.Equal(t, []string{"<nil>"}, failed(t, 7, http.StatusOK))
		require.Empty(t, failed(t, 7, http.StatusOK))
	}
}

// A request that a user ends, and a token that is not accepted, are no outage.
func TestRefusedTokensAreNotReported(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	k := s.newKey(t, "1")
	v, _ := s.verifier(t, func(c *accesstoken.Config) { c.Report = func(err error) { t.Error(err) } })
	ended, end := context.WithCancel(t.Context())
	end()
	_, err := v.Verify(ended, k.sign(t, s.claims(nil)))
	require.ErrorIs(t, err, context.Canceled)
	for range 2 {
		_, err = v.Verify(t.Context(), k.sign(t, s.claims(map[string]any{"sub": nil})))
		requireRefused(t, "invalid_token", err)
	}
	_, err = v.Verify(ended, key{"2", k.private}.sign(t, s.claims(nil)))
	require.Error(t, err)
}
