package oauth

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
)

// Prompt is the user's side of a sign-in.
type Prompt struct {
	// Open shows the authorization address, most often in a browser. It returns before the browser
	// has the page at the end of the sign-in, which waits for the result.
	Open func(address string) error
	// Paste reads the address that the browser was redirected to; nil: the
	// redirect is received on a port of this machine.
	Paste func(ctx context.Context) (string, error)
	// Device shows the address and the code of the device flow (RFC 8628); nil:
	// the authorization code flow is used.
	Device func(address, code string) error
}

// ErrLinkNotOpened is the cause that ends the context of a sign-in whose link the user or the client
// refused to open.
var ErrLinkNotOpened = errors.New("the link was not opened")

// maxStepUps bounds the further sign-ins for a server that keeps refusing calls
// for missing scopes.
const maxStepUps = 2

// A flow is one sign-in.
type flow struct {
	Config
	client   *http.Client
	resource resourceMetadata
	server   serverMetadata
	scopes   []string
	before   record // as it was at the start
	key      string // that the tokens are bound to; "": none
	stored   bool   // whether the client is a stored registration
	shared   bool   // whether the registration is in a record that all users share
}

// Login signs in to a server, stores the tokens, and returns the account. It waits for the user
// until ctx ends. The tokens of an earlier sign-in stay if it fails.
func Login(ctx context.Context, c Config, prompt Prompt) (SignInStatus, error) {
	if err := c.Validate(); err != nil {
		return SignInStatus{}, err
	}
	f := flow{Config: c, client: c.newHTTP()}
	if err := f.checkStorage(ctx); err != nil { // before the user is asked
		return SignInStatus{}, err
	}
	if err := f.prepare(ctx); err != nil {
		return SignInStatus{}, err
	}
	switch {
	case c.signsInAtIdentityProvider():
		return f.loginAtIdentityProvider(ctx, prompt)
	case c.signsInAlone():
		t, err := c.obtainTokens(ctx)
		if err != nil {
			return SignInStatus{}, err
		}
		return f.storeTokens(ctx, t)
	}
	status, err := f.loginUser(ctx, prompt)
	// A provider that has forgotten the client shows an error page instead of a redirect, at which
	// the user interrupts the sign-in or waits.
	if err != nil && f.stored && (isUnknownClient(err) || ctx.Err() != nil && !errors.Is(context.Cause(ctx), ErrLinkNotOpened)) {
		err = withFault(err, f.forgetClient(ctx, f.server.Issuer, f.before.Clients[f.server.Issuer]))
	}
	return status, err
}

// loginUser runs the device flow or the authorization code flow, and stores the tokens.
func (f *flow) loginUser(ctx context.Context, prompt Prompt) (SignInStatus, error) {
	if prompt.Device == nil {
		return f.runCodeFlow(ctx, prompt)
	}
	t, err := f.runDeviceFlow(ctx, prompt)
	if err != nil {
		return SignInStatus{}, err
	}
	return f.storeTokens(ctx, t)
}

// storeTokens stores the tokens of a sign-in and the registration, also if ctx has ended, and returns
// the account.
func (f *flow) storeTokens(ctx context.Context, t tokens) (SignInStatus, error) {
	ctx = context.WithoutCancel(ctx)
	var noKeyring error
	err := f.updateRecord(ctx, func(r *record) (_ bool, err error) {
		inFile := r.Tokens != nil && r.Sealed == nil
		if noKeyring, err = f.chooseStorage(ctx, r); err != nil {
			return false, err
		}
		if inFile {
			noKeyring = nil // an earlier sign-in has told it
		}
		if t.Client.RedirectURI != "" && !f.shared {
			r.Clients = map[string]registration{f.server.Issuer: t.Client}
		}
		if len(f.before.Wanted) > 0 {
			r.StepUps = f.before.StepUps + 1
		} else {
			r.StepUps = 0
		}
		r.keepFormer(t)
		if !r.Refused.IsZero() {
			r.SignedInAgain = time.Now()
		}
		r.Tokens, r.Wanted, r.Refused = &t, nil, time.Time{}
		return true, nil
	})
	if err != nil {
		return SignInStatus{}, err
	}
	a, _, err := f.Status()
	a.NoKeyring = noKeyring
	return a, err
}

// prepare requests the challenge of the server and the metadata, and sets where to sign in, the
// scopes, and the key of the tokens. It returns an error if further sign-ins would be of no use.
func (f *flow) prepare(ctx context.Context) error {
	var err error
	f.discardUnreadable = true // a sign-in replaces tokens that cannot be read
	if f.before, err = f.loadRecord(ctx); err != nil {
		return err
	}
	if err := f.checkKeyring(ctx); err != nil {
		return err
	}
	if len(f.before.Wanted) > 0 && f.before.StepUps >= maxStepUps {
		return fmt.Errorf("server %s asked for more scopes after each of %d sign-ins (last for %q), so another one is of no use; run mcp-host logout %s to start again",
			f.Server, maxStepUps, f.before.Wanted, f.Server)
	}
	if f.openID {
		return f.prepareOpenID(ctx)
	}
	challenge, err := f.challenge(ctx)
	if err != nil {
		return err
	}
	if !challenge.Bearer && f.before.Asked != nil {
		challenge = *f.before.Asked
	}
	if f.resource, err = f.Config.resourceMetadata(ctx, f.client, challenge); err != nil {
		return err
	}
	if f.server, err = f.authorizationServer(ctx, f.client, f.resource); err != nil {
		return err
	}
	f.chooseScopes(challenge)
	return f.makeProofKey(challenge)
}

// makeProofKey makes a key for the tokens if the configuration, the challenge or the
// metadata of the server asks for proofs of possession. The metadata of the provider alone
// is not sufficient: many providers support them whose servers do not. If the authorization server
// does not support the algorithm, it returns an error, or makes no key if proofs are not required.
func (f *flow) makeProofKey(challenge Challenge) (err error) {
	required := f.DPoP || challenge.DPoP || f.resource.DPoPRequired
	if !required && !slices.Contains(f.resource.DPoPAlgorithms, dpopAlgorithm) {
		return nil
	}
	if algorithms := f.server.DPoPAlgorithms; len(algorithms) > 0 && !slices.Contains(algorithms, dpopAlgorithm) {
		if !required {
			return nil // the server accepts other tokens, too
		}
		return fmt.Errorf("the authorization server %.200q does not accept proofs of possession with %s", f.server.Issuer, dpopAlgorithm)
	}
	f.key, err = newProofKey()
	return err
}

// chooseScopes sets the scopes: the configured ones, those of the challenge, or
// those of the metadata; and with them those that were granted before and
// those that a call needed.
func (f *flow) chooseScopes(challenge Challenge) {
	switch {
	case len(f.Scopes) > 0:
		f.scopes = slices.Clone(f.Scopes)
	case len(challenge.Scopes) > 0:
		f.scopes = slices.Clone(challenge.Scopes)
	default:
		f.scopes = slices.Clone(f.resource.ScopesSupported)
	}
	if len(f.before.Wanted) > 0 {
		if t := f.before.Tokens; t != nil && t.Issuer == f.server.Issuer {
			f.scopes = slices.Clone(t.Scopes)
		}
		f.scopes = mergeUnique(f.scopes, f.before.Wanted)
	}
	if slices.Contains(f.server.ScopesSupported, "offline_access") && !f.signsInAlone() {
		f.scopes = mergeUnique(f.scopes, []string{"offline_access"})
	}
}

// initializeRequest is a request of MCP that opens a session; a server that requires a sign-in
// refuses it.
const initializeRequest = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"toolroom","version":"1"}}}`

// challenge returns the challenge of the server to a request without a token; zero if the
// server does not answer with status 401. It returns an error if the server cannot be
// reached.
func (f *flow) challenge(ctx context.Context) (Challenge, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, f.URL, strings.NewReader(initializeRequest))
	if err != nil {
		return Challenge{}, errors.New("the address is malformed")
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	req.Header.Set("User-Agent", f.userAgent())
	res, err := f.client.Do(req)
	if err != nil {
		var wrapped *url.Error
		if errors.As(err, &wrapped) {
			err = wrapped.Err
		}
		return Challenge{}, fmt.Errorf("cannot reach server %s: %w", f.Server, err)
	}
	defer res.Body.Close()                                //nolint:errcheck // only read from
	io.Copy(io.Discard, io.LimitReader(res.Body, 64<<10)) //nolint:errcheck // the headers count
	if res.StatusCode != http.StatusUnauthorized {
		return Challenge{}, nil // some calls may need a sign-in
	}
	return ParseChallenge(res.Header.Values("WWW-Authenticate")), nil
}

// clientIdentity returns the client to sign in as: the configured one, the stored
// registration for this redirect address, or a new registration. It returns the error of
// the registration.
func (f *flow) clientIdentity(ctx context.Context, redirect string, device bool) (registration, error) {
	if r, ok := f.configuredClient(f.server); ok {
		return r, nil
	}
	if r, ok := f.before.Clients[f.server.Issuer]; ok && r.isUsable(time.Now()) && r.RedirectURI == redirect && f.hasScopes(r) {
		f.stored = true
		return r, nil
	}
	return f.register(ctx, f.client, f.server, redirect, f.scopes, device)
}

// hasScopes reports whether a registered client may ask for the scopes of the sign-in. A
// provider can refuse scopes that the registration did not ask for. Registrations by older
// versions of the host do not tell their scopes: those of the first sign-in.
func (f *flow) hasScopes(r registration) bool {
	if len(r.Scopes) == 0 && len(f.before.Wanted) == 0 {
		return true
	}
	return containsAll(r.Scopes, f.scopes)
}

// runCodeFlow runs the authorization code flow with PKCE (RFC 7636), stores the tokens after the
// redirect has arrived, and shows the result in the browser. It returns an error if ctx ends before
// the redirect.
func (f *flow) runCodeFlow(ctx context.Context, prompt Prompt) (status SignInStatus, err error) {
	if f.server.AuthorizationEndpoint == "" {
		return SignInStatus{}, fmt.Errorf("the authorization server %.200q has no authorization endpoint; use --device", f.server.Issuer)
	}
	redirect, err := f.listenForRedirect(prompt.Paste != nil)
	if err != nil {
		return SignInStatus{}, err
	}
	defer redirect.close()
	defer func() { redirect.end(status, err) }()
	client, err := f.clientIdentity(ctx, redirect.address, false)
	if err != nil {
		return SignInStatus{}, err
	}
	state, verifier := rand.Text(), rand.Text()+rand.Text()
	address, err := f.authorizationAddress(client, redirect.address, state, verifier)
	if err != nil {
		return SignInStatus{}, err
	}
	if prompt.Paste == nil {
		redirect.serve(func(answer url.Values) error { return f.checkAnswer(answer, state) })
	}
	if err := prompt.Open(address); err != nil {
		return SignInStatus{}, err
	}
	answer, err := f.awaitRedirect(ctx, prompt, redirect, state)
	if err != nil {
		return SignInStatus{}, err
	}
	t, err := f.exchangeCode(ctx, client, answer.Get("code"), redirect.address, verifier)
	if err == nil && f.openID {
		err = checkNonce(t, verifier)
	}
	if err != nil {
		return SignInStatus{}, err
	}
	return f.storeTokens(ctx, t)
}

// exchangeCode requests the tokens for an authorization code; see requestTokens. verifier
// is that of PKCE.
func (f *flow) exchangeCode(ctx context.Context, client registration, code, redirect, verifier string) (tokens, error) {
	return f.requestTokens(ctx, f.client, f.tokensWithoutSecrets(client), url.Values{
		"grant_type": {"authorization_code"}, "code": {code}, "redirect_uri": {redirect}, "code_verifier": {verifier},
	})
}

// tokensWithoutSecrets returns tokens with all values that are known before they are issued.
func (f *flow) tokensWithoutSecrets(client registration) tokens {
	return tokens{
		Issuer: f.server.Issuer, Resource: f.resource.Resource, Client: client,
		Endpoint: f.server.TokenEndpoint, Revocation: f.server.RevocationEndpoint, Scopes: f.scopes,
		Key: f.key,
	}
}

// awaitRedirect waits for the redirect, or for the user to paste its address, and returns
// its parameters if checkAnswer accepts them. It returns an error if the user refuses, the
// pasted text is no address, or ctx ends first.
func (f *flow) awaitRedirect(ctx context.Context, prompt Prompt, redirect *redirectServer, state string) (url.Values, error) {
	if prompt.Paste == nil {
		return redirect.wait(ctx)
	}
	text, err := prompt.Paste(ctx)
	switch {
	case err != nil && ctx.Err() != nil:
		return nil, errNotInTime
	case err != nil:
		return nil, err
	}
	u, err := url.Parse(strings.TrimSpace(text))
	if err != nil || u.RawQuery == "" {
		return nil, errors.New("the pasted text is not the address that the browser was redirected to: copy it whole, from http:// on")
	}
	return u.Query(), f.checkAnswer(u.Query(), state)
}

// errOtherState is the error for a redirect that may belong to another sign-in.
var errOtherState = errors.New("the answer does not have the state of the request, so it may not belong to this sign-in; nothing was sent")

// checkAnswer returns an error unless the parameters of a redirect have the state, the right issuer
// (RFC 9207) and a code: errOtherState for another state.
func (f *flow) checkAnswer(answer url.Values, state string) error {
	if !slices.Equal(answer["state"], []string{state}) { // before all else: any page can send an answer
		return errOtherState
	}
	for _, name := range []string{"iss", "code", "error"} {
		if len(answer[name]) > 1 {
			return fmt.Errorf("the answer of the authorization server has %s twice", name)
		}
	}
	iss := answer.Get("iss")
	switch {
	case f.server.SendsIssuer && iss == "":
		return errors.New("the answer lacks the issuer (iss) that this authorization server promises; nothing was sent")
	case iss != "" && iss != f.server.Issuer:
		return fmt.Errorf("the answer is from another authorization server, %.200q; nothing was sent", iss)
	case answer.Get("error") != "":
		text := fmt.Sprintf("the authorization server refused: %.60q", answer.Get("error"))
		if described := answer.Get("error_description"); described != "" {
			text += fmt.Sprintf(" (%.200q)", described)
		}
		return errors.New(text)
	case answer.Get("code") == "":
		return errors.New("the answer has no code")
	}
	return nil
}
