package oauth

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// callbackPath is the path of the redirect address.
const callbackPath = "/callback"

// A redirectServer receives the redirect on a port of this machine (RFC 8252, 7.3).
type redirectServer struct {
	address string   // the redirect address
	name    string   // of the server that the user signs in to, for the pages
	to      *url.URL // address
	server  *http.Server

	listeners []net.Listener // on one port; none if the address is pasted
	answers   chan url.Values
	failed    chan error
	once      sync.Once

	ended  chan struct{} // closed by end
	ending sync.Once
	status SignInStatus // status and err are the result of the sign-in, valid after ended is closed
	err    error
}

// redirectTarget returns the redirect address. Its host is 127.0.0.1, ::1 or localhost; its port is
// "" for any. It returns an error if RedirectURI is another address.
func (c Config) redirectTarget() (*url.URL, error) {
	address := c.RedirectURI
	if address == "" {
		address = "http://127.0.0.1" + callbackPath
	}
	u, err := url.Parse(address)
	switch {
	case err != nil || u.Scheme != "http" || u.User != nil || u.RawQuery != "" || u.ForceQuery || u.Fragment != "" || u.RawPath != "":
		return nil, fmt.Errorf("%.200q is not an address such as http://localhost:8400/callback", address)
	case !slices.Contains([]string{"127.0.0.1", "::1", "localhost"}, u.Hostname()):
		return nil, fmt.Errorf("%.200q is not an address of this machine: use localhost, 127.0.0.1 or [::1]", u.Host)
	case u.Port() != "" && c.RedirectPort != 0 && u.Port() != strconv.Itoa(c.RedirectPort):
		return nil, fmt.Errorf("%.200q has another port than redirect_port", address)
	case len(u.Port()) > 5 || len(u.Port()) == 5 && u.Port() > "65535":
		return nil, fmt.Errorf("%.200q has a port above 65535", address)
	case u.Port() == "" && strings.HasSuffix(u.Host, ":"):
		return nil, fmt.Errorf("%.200q has no port after the colon", address)
	}
	if u.Port() == "" && c.RedirectPort != 0 {
		u.Host = joinPort(u, strconv.Itoa(c.RedirectPort))
	}
	return u, nil
}

// joinPort returns the host of an address with a port.
func joinPort(u *url.URL, port string) string { return net.JoinHostPort(u.Hostname(), port) }

// listenForRedirect opens the port for the redirect: the configured one, that of the last
// registration, or any. It returns an error only if the configured port, or all, are taken. With
// pasted, the configured port is not opened, because nothing is received on it: another
// program, such as ssh that forwards it, may have it.
func (f *flow) listenForRedirect(pasted bool) (*redirectServer, error) {
	to, err := f.redirectTarget()
	if err != nil {
		return nil, err
	}
	port := to.Port()
	if pasted && port != "" && port != "0" {
		return f.newRedirectServer(to, nil), nil
	}
	if port == "" {
		if u, err := url.Parse(f.before.Clients[f.server.Issuer].RedirectURI); err == nil {
			port = u.Port()
		}
	}
	listeners, err := listenLocally(to.Hostname(), cmp.Or(port, "0"))
	for range portAttempts {
		if err == nil || to.Port() != "" {
			break
		}
		listeners, err = listenLocally(to.Hostname(), "0")
	}
	if err != nil {
		return nil, fmt.Errorf("no port for the redirect: %w", err)
	}
	_, port, _ = net.SplitHostPort(listeners[0].Addr().String()) //nolint:errcheck // of a listener
	to.Host = joinPort(to, port)
	return f.newRedirectServer(to, listeners), nil
}

// newRedirectServer returns the receiver of the redirect to an address.
func (f *flow) newRedirectServer(to *url.URL, listeners []net.Listener) *redirectServer {
	return &redirectServer{
		address: to.String(), to: to, name: f.signInTarget(), listeners: listeners,
		answers: make(chan url.Values, 1), failed: make(chan error, 1), ended: make(chan struct{}),
	}
}

// portAttempts is the number of attempts to find a port that is free for all addresses of localhost.
const portAttempts = 10

// listenLocally listens on a port of a host: for localhost on 127.0.0.1 and on ::1, because a
// browser can use either. It returns an error if the port is taken on one of them. If
// the machine lacks one of them, it listens on the other one.
func listenLocally(host, port string) ([]net.Listener, error) {
	if host != "localhost" {
		listener, err := net.Listen("tcp", net.JoinHostPort(host, port))
		if err != nil {
			return nil, err
		}
		return []net.Listener{listener}, nil
	}
	var listeners []net.Listener
	var missing error
	for _, address := range []string{"127.0.0.1", "::1"} {
		listener, err := net.Listen("tcp", net.JoinHostPort(address, port))
		switch {
		case err == nil:
			listeners = append(listeners, listener)
			_, port, _ = net.SplitHostPort(listener.Addr().String()) //nolint:errcheck // of a listener
		case isAddressMissing(err):
			missing = err
		default:
			closeAll(listeners)
			return nil, err
		}
	}
	if len(listeners) == 0 {
		return nil, missing
	}
	return listeners, nil
}

// isAddressMissing reports whether err, of net.Listen, says that the machine does not have the
// address or its protocol.
func isAddressMissing(err error) bool {
	var code syscall.Errno
	return errors.As(err, &code) && slices.Contains([]syscall.Errno{
		syscall.EADDRNOTAVAIL, syscall.EAFNOSUPPORT, syscall.EPROTONOSUPPORT,
		10049, 10047, 10043, // the same on Windows (WSAEADDRNOTAVAIL, WSAEAFNOSUPPORT, WSAEPROTONOSUPPORT)
	}, code)
}

// closeAll closes listeners.
func closeAll(listeners []net.Listener) {
	for _, listener := range listeners {
		listener.Close() //nolint:errcheck // nothing was accepted, or Shutdown has closed it
	}
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
	d.server = &http.Server{
		ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 5 * time.Second, WriteTimeout: pageTimeout + 5*time.Second, MaxHeaderBytes: 64 << 10,
		Handler: http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
			if req.Method != http.MethodGet || req.URL.Path != cmp.Or(d.to.Path, "/") || !isHostOf(req.Host, d.to) {
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
	for _, listener := range d.listeners {
		go d.server.Serve(listener) //nolint:errcheck // ends with close
	}
}

// isHostOf reports whether a Host header is that of requests to an address.
func isHostOf(header string, u *url.URL) bool {
	return strings.EqualFold(header, u.Host) || u.Port() == "80" && strings.EqualFold(header, strings.TrimSuffix(u.Host, ":80"))
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

// errNotInTime is the error of a sign-in whose context ended before the redirect.
var errNotInTime = errors.New("the sign-in was not completed in time; run the command again")

// wait waits for the first redirect of this sign-in, and returns its parameters or the error of
// check. It returns an error if ctx ends before.
func (d *redirectServer) wait(ctx context.Context) (url.Values, error) {
	select {
	case answer := <-d.answers:
		return answer, nil
	case err := <-d.failed:
		return nil, err
	case <-ctx.Done():
		return nil, errNotInTime
	}
}

// close ends the server after the page in the browser has been written.
func (d *redirectServer) close() {
	d.end(SignInStatus{}, errors.New("mcp-host was interrupted"))
	if d.server == nil {
		closeAll(d.listeners)
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	if d.server.Shutdown(ctx) != nil {
		d.server.Close() //nolint:errcheck // the sign-in has its answer
	}
}
