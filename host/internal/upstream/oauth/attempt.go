package oauth

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"net/url"
	"time"
)

// An Attempt is a sign-in whose redirect arrives at an address that the caller of Begin
// serves. It is used by one goroutine at a time.
type Attempt struct {
	flow     flow
	client   registration
	redirect string
	state    string
	verifier string // of PKCE
}

// Begin prepares a sign-in and returns the authorization address for the browser. redirect
// is the redirect URI (RFC 6749, section 3.1.2). Begin requests the metadata of the
// servers, and may register a client. It returns an error if a server does not answer, or
// does not support such a sign-in.
func Begin(ctx context.Context, c Config, redirect string) (a *Attempt, address string, err error) {
	if err := c.Validate(); err != nil {
		return nil, "", err
	}
	a = &Attempt{flow: flow{Config: c, client: c.newHTTP()}, redirect: redirect, state: rand.Text(), verifier: rand.Text() + rand.Text()}
	if err := a.flow.checkStorage(ctx); err != nil { // before the user is asked
		return nil, "", err
	}
	if err := a.flow.prepare(ctx); err != nil {
		return nil, "", err
	}
	if a.flow.server.AuthorizationEndpoint == "" {
		return nil, "", fmt.Errorf("the authorization server %.200q has no authorization endpoint", a.flow.server.Issuer)
	}
	if a.client, err = a.flow.sharedClient(ctx, redirect); err != nil {
		return nil, "", err
	}
	address, err = a.flow.authorizationAddress(a.client, redirect, a.state, a.verifier)
	return a, address, err
}

// State returns the state that the redirect must have.
func (a *Attempt) State() string { return a.state }

// suspendedAttempt is an Attempt in JSON.
type suspendedAttempt struct {
	Resource resourceMetadata `json:"resource"`
	Server   serverMetadata   `json:"server"`
	Scopes   []string         `json:"scopes"`
	Key      string           `json:"key"`
	Shared   bool             `json:"shared"`
	Client   registration     `json:"client"`
	Redirect string           `json:"redirect"`
	State    string           `json:"state"`
	Verifier string           `json:"verifier"`
}

// Suspend returns the sign-in in a form that Resume of another process accepts. It contains secrets.
func (a *Attempt) Suspend() ([]byte, error) {
	f := &a.flow
	return json.Marshal(suspendedAttempt{f.resource, f.server, f.scopes, f.key, f.shared, a.client, a.redirect, a.state, a.verifier})
}

// Resume returns the sign-in that Suspend returned. c must be as for Begin.
func Resume(ctx context.Context, c Config, suspended []byte) (*Attempt, error) {
	var s suspendedAttempt
	if err := json.Unmarshal(suspended, &s); err != nil {
		return nil, err
	}
	a := &Attempt{client: s.Client, redirect: s.Redirect, state: s.State, verifier: s.Verifier}
	a.flow = flow{Config: c, client: c.newHTTP(), resource: s.Resource, server: s.Server, scopes: s.Scopes, key: s.Key, shared: s.Shared}
	a.flow.discardUnreadable = true // as in prepare
	var err error
	a.flow.before, err = a.flow.loadRecord(ctx)
	return a, err
}

// Finish checks the parameters of the redirect, exchanges the code, and stores the tokens.
// It returns an error for another state, or a refused sign-in. The account is as Status returns it.
func (a *Attempt) Finish(ctx context.Context, answer url.Values) (SignInStatus, error) {
	if err := a.flow.checkAnswer(answer, a.state); err != nil {
		return SignInStatus{}, err
	}
	t, err := a.flow.exchangeCode(ctx, a.client, answer.Get("code"), a.redirect, a.verifier)
	if isUnknownClient(err) {
		err = withFault(err, a.flow.forgetClient(ctx, a.flow.server.Issuer, a.client))
	}
	if err != nil {
		return SignInStatus{}, err
	}
	return a.flow.storeTokens(ctx, t)
}

// redirectSubjectPrefix begins the subject of records that hold the registration for a redirect
// address. No issuer begins with it.
const redirectSubjectPrefix = "redirect "

// sharedClient returns the client to sign in as: the configured one, or a registered one,
// which it stores. All subjects use one registration for a redirect address, which has its
// own record. It returns an error if the registration fails or cannot be stored.
func (f *flow) sharedClient(ctx context.Context, redirect string) (client registration, err error) {
	if r, ok := f.configuredClient(f.server); ok {
		return r, nil
	}
	f.shared = true
	shared := f.Config
	shared.Subject = redirectSubjectPrefix + redirect
	err = shared.updateRecord(ctx, func(r *record) (bool, error) {
		var ok bool
		if client, ok = r.Clients[f.server.Issuer]; ok && client.isUsable(time.Now()) && f.hasScopes(client) {
			return false, nil
		}
		var err error
		// Other users need the scopes of the previous registration.
		if client, err = f.register(ctx, f.client, f.server, redirect, mergeUnique(client.Scopes, f.scopes), false); err != nil {
			return false, err
		}
		if r.Clients == nil {
			r.Clients = map[string]registration{}
		}
		r.Clients[f.server.Issuer] = client
		return true, nil
	})
	return client, err
}
