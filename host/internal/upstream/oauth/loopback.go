package oauth

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"sync"
	"time"
)

// callback is the path of the redirect address.
const callback = "/callback"

// A redirectServer receives the redirect on a port of this machine (RFC 8252, 7.3).
type redirectServer struct {
	address  string // the redirect address
	name     string // of the server that the user signs in to, for the pages
	listener net.Listener
	server   *http.Server
	answers  chan url.Values
	failed   chan error
	once     sync.Once

	ended  chan struct{} // closed by end
	ending sync.Once
	status SignInStatus // status and err are the result of the sign-in, valid after ended is closed
	err    error
}

// listenForRedirect opens the port for the redirect: the configured one, that of the last
// registration, or any. It returns an error only if the configured port, or all, are taken.
func (f *flow) listenForRedirect() (*redirectServer, error) {
	port := f.RedirectPort
	if port == 0 {
		if u, err := url.Parse(f.before.Clients[f.server.Issuer].RedirectURI); err == nil {
			port, _ = strconv.Atoi(u.Port()) //nolint:errcheck // 0: any
		}
	}
	listener, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err != nil && f.RedirectPort == 0 {
		listener, err = net.Listen("tcp", "127.0.0.1:0")
	}
	if err != nil {
		return nil, fmt.Errorf("no port for the redirect: %w", err)
	}
	return &redirectServer{
		address: "http://" + listener.Addr().String() + callback, name: f.signInTarget(), listener: listener,
		answers: make(chan url.Values, 1), failed: make(chan error, 1), ended: make(chan struct{}),
	}, nil
}

// signInTarget names the server that the user signs in to.
func (f *flow) signInTarget() string {
	if f.openID {
		return "the identity provider " + f.URL
	}
	return "server " + f.Server
}

// serve takes the first redirect that has the state of this sign-in. Any page in
// the browser can send others. check returns the error of a redirect.
func (d *redirectServer) serve(check func(url.Values) error) {
	host := d.listener.Addr().String()
	d.server = &http.Server{
		ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 5 * time.Second, WriteTimeout: pageTimeout + 5*time.Second, MaxHeaderBytes: 64 << 10,
		Handler: http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
			if req.Method != http.MethodGet || req.URL.Path != callback || req.Host != host {
				http.Error(w, "not found", http.StatusNotFound)
				return
			}
			answer := req.URL.Query()
			err := check(answer)
			if errors.Is(err, errOtherState) {
				WritePage(w, http.StatusBadRequest, "Sign-in failed", "This answer does not belong to the sign-in that mcp-host is waiting for.")
				return
			}
			d.once.Do(func() {
				if err != nil {
					d.failed <- err
				} else {
					d.answers <- answer
				}
			})
			d.showResult(w, req)
		}),
	}
	go d.server.Serve(d.listener) //nolint:errcheck // ends with close
}

// pageTimeout bounds how long the page in the browser waits for the result of the sign-in: the
// time for the tokens, and for the lock of their record.
const pageTimeout = requestTimeout + lockTimeout

// showResult waits for the result of the sign-in and writes it as a page.
func (d *redirectServer) showResult(w http.ResponseWriter, req *http.Request) {
	late := time.NewTimer(pageTimeout)
	defer late.Stop()
	select {
	case <-d.ended:
	case <-late.C:
		WritePage(w, http.StatusGatewayTimeout, "Sign-in not finished", "mcp-host is still waiting for the tokens of "+d.name+". You can close this page.")
		return
	case <-req.Context().Done():
		return
	}
	if d.err != nil {
		WritePage(w, http.StatusBadRequest, "Sign-in failed", fmt.Sprintf("The sign-in to %s failed: %v.", d.name, d.err))
		return
	}
	text := fmt.Sprintf("mcp-host is signed in to %s. You can close this page.", d.name)
	if d.status.NoKeyring != nil {
		text += fmt.Sprintf(" The tokens are in a file that only you can read, because the keyring of the system cannot be used: %v.", d.status.NoKeyring)
	}
	WritePage(w, http.StatusOK, "Signed in", text)
}

// end sets the result of the sign-in, which the page in the browser shows. Only the first call has
// an effect.
func (d *redirectServer) end(status SignInStatus, err error) {
	d.ending.Do(func() {
		d.status, d.err = status, err
		close(d.ended)
	})
}

// wait waits for the first redirect of this sign-in, and returns its parameters or the error of
// check. It returns an error if ctx ends before.
func (d *redirectServer) wait(ctx context.Context) (url.Values, error) {
	select {
	case answer := <-d.answers:
		return answer, nil
	case err := <-d.failed:
		return nil, err
	case <-ctx.Done():
		return nil, errors.New("the sign-in was not completed in time; run the command again")
	}
}

// close ends the server after the page in the browser has been written.
func (d *redirectServer) close() {
	d.end(SignInStatus{}, errors.New("mcp-host was interrupted"))
	if d.server == nil {
		d.listener.Close() //nolint:errcheck // nothing was accepted
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	if d.server.Shutdown(ctx) != nil {
		d.server.Close() //nolint:errcheck // the sign-in has its answer
	}
}
