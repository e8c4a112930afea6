package oauth

import (
	"context"
	"errors"
	"fmt"
)

// isUnknownClient reports whether a server refused a client, as after it has lost its
// registrations.
func isUnknownClient(err error) bool {
	var status *statusError
	return errors.As(err, &status) && (status.code == "invalid_client" || status.code == "unauthorized_client")
}

// forgetClient removes a dynamic registration from the record, and for a user from the record
// that all users share, so that the next sign-in registers again. It does nothing for a
// configured client, and if another process has registered since.
func (c Config) forgetClient(ctx context.Context, issuer string, client registration) error {
	if client.RedirectURI == "" {
		return nil // configured, or a client metadata document
	}
	ctx = context.WithoutCancel(ctx)
	records := []Config{c}
	if c.Subject != "" {
		shared := c
		shared.Subject = redirectSubjectPrefix + client.RedirectURI
		records = append(records, shared)
	}
	var errs []error
	for _, of := range records {
		errs = append(errs, of.updateRecord(ctx, func(r *record) (bool, error) {
			return r.removeClient(issuer, client.ClientID), nil
		}))
	}
	return errors.Join(errs...)
}

// removeClient removes a registration, and reports whether it was there.
func (r *record) removeClient(issuer, clientID string) bool {
	if r.Clients[issuer].ClientID != clientID {
		return false
	}
	delete(r.Clients, issuer)
	return true
}

// forgetClients removes all registrations from the record.
func (c Config) forgetClients(ctx context.Context) error {
	return c.updateRecord(ctx, func(r *record) (bool, error) {
		changed := len(r.Clients) > 0
		r.Clients = nil
		return changed, nil
	})
}

// withFault returns err, whose text then also tells a second error, if that is not nil.
func withFault(err, fault error) error {
	if fault == nil {
		return err
	}
	return fmt.Errorf("%w; and %w", err, fault)
}
