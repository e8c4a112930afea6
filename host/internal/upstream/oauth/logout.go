package oauth

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
)

// NotRevokedError says that tokens are deleted here, but may still be valid at the
// authorization server. It unwraps to Err.
type NotRevokedError struct{ Err error }

func (e *NotRevokedError) Error() string { return e.Err.Error() }

// Unwrap returns the reason.
func (e *NotRevokedError) Unwrap() error { return e.Err }

// maxFormerTokens bounds the refresh tokens of earlier sign-ins that a record keeps.
const maxFormerTokens = 8

// keepFormer keeps the refresh token that those of a new sign-in replace, until Logout revokes it. It is
// not revoked at once: many providers then also end the new sign-in, because both belong to
// the same consent of the user.
func (r *record) keepFormer(replacement tokens) {
	old := r.Tokens
	if old == nil {
		old = r.ofOtherClient
	}
	if old == nil || old.Refresh == "" || old.Refresh == replacement.Refresh {
		return
	}
	former := *old
	former.Access = "" // it expires
	r.Former = append(r.Former[max(0, len(r.Former)+1-maxFormerTokens):], former)
}

// takeFormer removes the refresh tokens of earlier sign-ins from the record and returns them, except
// those of another client than the configured one.
func (c Config) takeFormer(r *record) (former []tokens) {
	r.Former = slices.DeleteFunc(r.Former, func(t tokens) bool {
		if c.ClientID != "" && t.Client.ClientID != c.ClientID {
			return false
		}
		former = append(former, t)
		return true
	})
	return former
}

// Logout deletes the tokens and the registration, also those of the identity provider, and then
// revokes the tokens (RFC 7009), with those of earlier sign-ins. It returns a *NotRevokedError if only
// that fails; another error means that they are not deleted. found is false if no tokens were deleted.
func Logout(ctx context.Context, c Config) (found bool, err error) {
	c.discardUnreadable = true
	if c.signsInAtIdentityProvider() {
		defer func() {
			signedIn, fault := Logout(ctx, c.identityConfig())
			found, err = found || signedIn, joinErrors(err, fault)
		}()
	}
	var deleted []tokens
	var lost error
	err = c.updateRecord(ctx, func(r *record) (bool, error) {
		deleted, lost = c.takeFormer(r), r.lost
		if r.Tokens != nil {
			found, deleted = true, append(deleted, *r.Tokens)
		}
		r.Tokens, r.Wanted, r.StepUps = nil, nil, 0
		r.Clients = nil // the next sign-in registers again: the server may have lost the registration
		return true, nil
	})
	switch {
	case err != nil:
		return false, err
	case lost != nil:
		return true, &NotRevokedError{fmt.Errorf("they are not revoked: %w", lost)}
	}
	var errs []error
	for _, t := range slices.Backward(deleted) {
		errs = append(errs, c.revoke(ctx, t))
	}
	if err := joinErrors(errs...); err != nil {
		return found, &NotRevokedError{err}
	}
	return found, nil
}

// LogoutUsers signs all users of serve out of a server, as Logout does, deletes the registration
// that they share, and returns their number. It continues after an error and returns all errors.
func LogoutUsers(ctx context.Context, c Config) (users int, err error) {
	subjects, err := c.subjects(ctx)
	if err != nil {
		return 0, err
	}
	var errs []error
	for _, subject := range subjects {
		of := c
		of.Subject = subject
		if strings.HasPrefix(subject, redirectSubjectPrefix) {
			errs = append(errs, of.forgetClients(ctx))
			continue
		}
		found, err := Logout(ctx, of)
		if found {
			users++
		}
		errs = append(errs, err)
	}
	return users, joinErrors(errs...)
}

// subjects returns the subjects that have a record of this server, without the host itself.
func (c Config) subjects(ctx context.Context) (subjects []string, err error) {
	if _, ok, err := c.clusterRecord(); err != nil {
		return nil, err
	} else if ok {
		return c.clusterSubjects(ctx)
	}
	files, err := filepath.Glob(filepath.Join(c.recordsDir(), "*.json"))
	if err != nil {
		return nil, err
	}
	for _, file := range files {
		of := c
		if of.Subject = subjectIn(file); of.Subject != "" && of.recordFile() == file {
			subjects = append(subjects, of.Subject)
		}
	}
	return subjects, nil
}

// revoke revokes the refresh and the access token at the authorization server, and returns the errors
// of both; also an error if the server cannot revoke tokens.
func (c Config) revoke(ctx context.Context, t tokens) error {
	if c.openID {
		t.Access = "" // an ID token cannot be revoked
	}
	if t.Access == "" && t.Refresh == "" {
		return nil
	}
	if t.Revocation == "" {
		return errors.New("the authorization server cannot revoke tokens; the access token stays valid until it expires")
	}
	client := c.newHTTP()
	var errs []error
	for _, one := range []struct{ hint, token string }{{"refresh_token", t.Refresh}, {"access_token", t.Access}} {
		if one.token == "" {
			continue
		}
		if err := c.postForm(ctx, client, t.Revocation, t.Client, url.Values{"token": {one.token}, "token_type_hint": {one.hint}}, nil); err != nil && !isRevoked(err) {
			errs = append(errs, fmt.Errorf("revoking the %s: %w", strings.ReplaceAll(one.hint, "_", " "), err))
		}
	}
	return joinErrors(errs...)
}

// isRevoked reports whether an authorization server answered that a token is not valid. Some do that if
// they have revoked it together with another one; RFC 7009 wants success.
func isRevoked(err error) bool {
	var status *statusError
	return errors.As(err, &status) && status.status == http.StatusBadRequest && status.code == "invalid_token"
}

// joinErrors returns an error that wraps the errors that are not nil, with their texts in one line; nil:
// all are nil.
func joinErrors(errs ...error) error {
	var joined error
	for _, err := range errs {
		switch {
		case joined == nil:
			joined = err
		case err != nil:
			joined = fmt.Errorf("%w; %w", joined, err)
		}
	}
	return joined
}
