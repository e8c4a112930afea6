package oauth

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"
)

// deviceGrant is the grant type of the device flow.
const deviceGrant = "urn:ietf:params:oauth:grant-type:device_code"

// The bounds of the pause between two requests of the device flow. A server
// that says none wants 5 s (RFC 8628, 3.2).
const (
	defaultPause  = 5 * time.Second
	shortestPause = 100 * time.Millisecond
	longestPause  = time.Minute
)

// runDeviceFlow runs the device flow (RFC 8628): the user opens an address on any machine and
// enters a code. It returns the tokens after the user has decided, or an error if ctx ends or the
// code expires before.
func (f *flow) runDeviceFlow(ctx context.Context, prompt Prompt) (tokens, error) {
	if f.server.DeviceEndpoint == "" {
		return tokens{}, fmt.Errorf("the authorization server %.200q has no device flow; use --paste", f.server.Issuer)
	}
	client, err := f.clientIdentity(ctx, "http://127.0.0.1"+callbackPath, true)
	if err != nil {
		return tokens{}, err
	}
	form := url.Values{}
	f.addParameters(form)
	if f.resource.Resource != "" {
		form.Set("resource", f.resource.Resource)
	}
	if len(f.scopes) > 0 {
		form.Set("scope", strings.Join(f.scopes, " "))
	}
	var got struct {
		Device   string   `json:"device_code"`
		User     string   `json:"user_code"`
		Address  string   `json:"verification_uri"`
		Google   string   `json:"verification_url"` // Google's name of verification_uri
		Expires  seconds  `json:"expires_in"`
		Interval *seconds `json:"interval"`
	}
	if err := f.postForm(ctx, f.client, f.server.DeviceEndpoint, client, form, &got); err != nil {
		return tokens{}, fmt.Errorf("asking for a device code: %w", err)
	}
	if got.Device == "" || got.User == "" {
		return tokens{}, errors.New("the authorization server sent no device code")
	}
	got.Address = cmp.Or(got.Address, got.Google)
	if _, err := f.checkAddress("verification address", got.Address); err != nil {
		return tokens{}, err
	}
	address, err := BrowserURL(got.Address)
	if err != nil {
		return tokens{}, err
	}
	if err := prompt.Device(address, got.User); err != nil {
		return tokens{}, err
	}
	if got.Expires > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, min(got.Expires, seconds(maxLifetime.Seconds())).duration())
		defer cancel()
	}
	pause := defaultPause
	if got.Interval != nil && *got.Interval >= 0 {
		pause = min(min(*got.Interval, 3600).duration(), longestPause)
	}
	return f.pollForTokens(ctx, f.tokensWithoutSecrets(client), got.Device, pause)
}

// pollForTokens requests the tokens for a device code, with this pause or a longer one if
// the server asks for it or cannot be reached (RFC 8628, 3.5), until the user has decided or
// ctx ends. It returns an error if the user refuses, or ctx ends first.
func (f *flow) pollForTokens(ctx context.Context, t tokens, code string, pause time.Duration) (tokens, error) {
	var failed error // of the last request, if it can succeed later
	for {
		select {
		case <-time.After(max(pause, shortestPause)):
		case <-ctx.Done():
			if failed != nil {
				return tokens{}, fmt.Errorf("the sign-in was not completed in time; run the command again: %w", failed)
			}
			return tokens{}, errors.New("the code was not entered in time; run the command again")
		}
		got, err := f.requestTokens(ctx, f.client, t, url.Values{"grant_type": {deviceGrant}, "device_code": {code}})
		var status *statusError
		switch {
		case err == nil:
			return got, nil
		case errors.As(err, &status) && status.code == "authorization_pending":
			failed = nil
		case errors.As(err, &status) && status.code == "slow_down":
			pause, failed = min(pause+5*time.Second, longestPause), nil
		case isTemporary(err) && ctx.Err() == nil:
			pause, failed = min(2*max(pause, shortestPause), longestPause), err
		default:
			return tokens{}, err
		}
	}
}
