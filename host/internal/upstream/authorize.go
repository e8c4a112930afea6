package upstream

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"

	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// Authorizer supplies the access token of a server that requires OAuth. It is
// safe for concurrent use. Package oauth has it.
type Authorizer interface {
	// Token returns the token to send; "": there is none.
	Token(ctx context.Context) (string, error)
	// Refused handles an answer of status 401 or 403, with its WWW-Authenticate
	// headers, to a request with that token. It reports whether the request is
	// to be sent again; the error says what the user can do.
	Refused(ctx context.Context, token string, status int, headers []string) (again bool, err error)
	// Sign adds a token that is not empty to a request, by its scheme.
	Sign(req *http.Request, token string) error
	// Received looks at each answer. It reports whether the request can be sent
	// again at once, signed anew.
	Received(res *http.Response) (again bool)
	// Changed reports whether there is a token that has not been sent yet.
	Changed() bool
	// SignIn describes the sign-in for a person: who, until when, with which
	// scopes; "": nobody signed in, nor was it asked for.
	SignIn() string
	// Secrets are the tokens to hide in messages.
	Secrets() []string
}

// bearer adds the access token to the requests to one origin. It sends a request
// again, once, after a refusal that a new token resolves, and once after one that
// only an answer to the server's nonce resolves.
type bearer struct {
	next http.RoundTripper
	auth Authorizer
	base *url.URL
}

// authorized wraps the transport of a server that may require OAuth.
func (c Config) authorized(base *url.URL, next http.RoundTripper) http.RoundTripper {
	if c.Auth == nil {
		return next
	}
	return &bearer{next, c.Auth, base}
}

// signInError says that the server, or only one call, waits for a sign-in.
type signInError struct {
	error
	server bool
}

func (e *signInError) Unwrap() error { return e.error }

// needsSignIn reports whether an error says that all requests to the server wait
// for a sign-in.
func needsSignIn(err error) bool {
	var e *signInError
	return errors.As(err, &e) && e.server
}

func (b *bearer) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.URL.Scheme != b.base.Scheme || req.URL.Host != b.base.Host { // the token is for this server alone
		return b.next.RoundTrip(req)
	}
	repeats := req.Body == nil || req.GetBody != nil
	for refused, answered := false, false; ; {
		token, err := b.auth.Token(req.Context())
		if err != nil {
			return nil, refusedSignIn(err, true)
		}
		signed, err := b.signed(req, token)
		if err != nil {
			return nil, refusedSignIn(err, true)
		}
		res, err := b.next.RoundTrip(signed)
		if err != nil {
			return nil, err
		}
		if b.auth.Received(res) && !answered && repeats {
			answered = true
			if req, err = repeated(req, res); err != nil {
				return nil, err
			}
			continue
		}
		if res.StatusCode != http.StatusUnauthorized && res.StatusCode != http.StatusForbidden {
			return res, err
		}
		retry, err := b.auth.Refused(req.Context(), token, res.StatusCode, res.Header.Values("WWW-Authenticate"))
		if err != nil {
			drain(res.Body)
			return nil, refusedSignIn(err, res.StatusCode == http.StatusUnauthorized)
		}
		if !retry || refused || !repeats {
			return res, nil
		}
		refused = true
		if req, err = repeated(req, res); err != nil {
			return nil, err
		}
	}
}

// repeated returns a request to send once more, after the answer to it.
func repeated(req *http.Request, res *http.Response) (*http.Request, error) {
	drain(res.Body)
	if req.Body == nil {
		return req, nil
	}
	req = req.Clone(req.Context())
	var err error
	req.Body, err = req.GetBody()
	return req, err
}

// CloseIdleConnections is called by http.Client.
func (b *bearer) CloseIdleConnections() {
	if closing, ok := b.next.(interface{ CloseIdleConnections() }); ok {
		closing.CloseIdleConnections()
	}
}

func refusedSignIn(err error, server bool) error {
	return &signInError{toolerr.New(toolerr.AuthFailed, "%w", err), server}
}

// signed returns the request with a token; a round tripper must not change the
// request it is given.
func (b *bearer) signed(req *http.Request, token string) (*http.Request, error) {
	if token == "" {
		return req, nil
	}
	req = req.Clone(req.Context())
	return req, b.auth.Sign(req, token)
}

// advice tells how credentials for the server are given.
func (r *remote) advice() string {
	text := "check api_key, auth_token_env or headers of server " + r.cfg.Name
	if r.cfg.Auth != nil {
		text += fmt.Sprintf(", or run mcp-host login %s if it uses OAuth", r.cfg.Name)
	}
	return text
}
