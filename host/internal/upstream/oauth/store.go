package oauth

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"github.com/toolroom-mcp/toolroom/host/internal/store"
	"github.com/toolroom-mcp/toolroom/internal/filelock"
)

// tokens holds the result of a sign-in, and the values that a refresh or a
// revocation needs. They are sent only to this issuer and this resource.
type tokens struct {
	Issuer     string       `json:"issuer"`
	Resource   string       `json:"resource"`
	Client     registration `json:"client"`
	Endpoint   string       `json:"token_endpoint"`
	Revocation string       `json:"revocation_endpoint,omitempty"`
	Access     string       `json:"access_token"`
	Refresh    string       `json:"refresh_token,omitempty"`
	Issued     time.Time    `json:"issued"`
	Expires    time.Time    `json:"expires,omitzero"` // zero: the server did not say
	Scopes     []string     `json:"scopes,omitempty"`
	Key        string       `json:"dpop_key,omitempty"` // in PEM; "": the tokens are bound to none
	Scheme     string       `json:"scheme,omitempty"`   // DPoP; "": Bearer
}

// refreshBeforeExpiry is the longest time before its expiry at which an access token is
// refreshed.
const refreshBeforeExpiry = time.Minute

// isDue reports whether to refresh the access token: in the last minute before its
// expiry, or in the last tenth of its lifetime if that is shorter.
func (t *tokens) isDue(now time.Time) bool {
	return !t.Expires.IsZero() && !now.Before(t.Expires.Add(-min(refreshBeforeExpiry, t.Expires.Sub(t.Issued)/10)))
}

// record is the file of one server address and account.
type record struct {
	URL     string                  `json:"url"`
	Account string                  `json:"account,omitempty"`
	Subject string                  `json:"subject,omitempty"`
	Clients map[string]registration `json:"clients,omitempty"` // registered dynamically, by issuer
	Tokens  *tokens                 `json:"tokens,omitempty"`  // nil: a sign-in is needed
	Former  []tokens                `json:"former,omitempty"`  // refresh tokens of earlier sign-ins, for Logout; see keepFormer
	Asked   *Challenge              `json:"asked,omitempty"`   // of the last 401
	Wanted  []string                `json:"wanted,omitempty"`  // scopes of the last insufficient_scope
	StepUps int                     `json:"step_ups,omitempty"`
	Refused time.Time               `json:"refused,omitzero"` // when the server refused Tokens although they were just issued
	// SignedInAgain is the time of the last sign-in that followed on Refused.
	SignedInAgain time.Time     `json:"signed_in_again,omitzero"`
	Sealed        *sealed       `json:"sealed,omitempty"` // holds Clients, Tokens and Former in the file; nil: they are not encrypted
	version       store.Version // with InCluster
	// ofOtherClient are tokens of another client than the configured one, which are not used
	// and not deleted.
	ofOtherClient *tokens
	lost          error // why the tokens cannot be decrypted, if loadRecord ignored it
}

// hasSecrets reports whether the record has tokens, or the secret of a client.
func (r record) hasSecrets() bool {
	for _, client := range r.Clients {
		if client.ClientSecret != "" {
			return true
		}
	}
	return r.Tokens != nil || len(r.Former) > 0
}

// maxRecord bounds the file.
const maxRecord = 1 << 20

// lockTimeout is the longest wait for another process that signs in or refreshes.
const lockTimeout = 2 * requestTimeout

// recordsDir returns the directory of the records.
func (c Config) recordsDir() string { return filepath.Join(c.State, "oauth") }

// recordFile returns the path of the record's file.
func (c Config) recordFile() string { return filepath.Join(c.recordsDir(), c.recordID()+".json") }

// recordID returns the name of the record, a hash of address, account and subject.
func (c Config) recordID() string {
	name := c.URL + "\x00" + c.Account
	if c.Subject != "" {
		name += "\x00" + c.Subject
	}
	sum := sha256.Sum256([]byte(name))
	return hex.EncodeToString(sum[:16])
}

// loadRecord reads the record with its tokens. It returns an empty record if none exists, and
// an error if other users can read its file, or if its key cannot be read. Tokens of
// another client than the configured one are left out.
func (c Config) loadRecord(ctx context.Context) (record, error) {
	r, err := c.readRecord(ctx)
	if err == nil {
		err = c.unseal(ctx, &r)
	}
	var locked *keyringError
	if (c.discardUnreadable || c.signsInAlone()) && errors.As(err, &locked) { // machines can sign in at any time
		r.Sealed, r.lost, err = nil, err, nil
	}
	if t := r.Tokens; t != nil && c.ClientID != "" && t.Client.ClientID != c.ClientID {
		r.Tokens, r.ofOtherClient = nil, t
	}
	return r, err
}

// readRecord reads the record, with its tokens if they are not encrypted.
func (c Config) readRecord(ctx context.Context) (record, error) {
	empty := record{URL: c.URL, Account: c.Account, Subject: c.Subject}
	if shared, ok, err := c.clusterRecord(); err != nil {
		return empty, err
	} else if ok {
		text, version, err := shared.read(ctx)
		empty.version = version
		if err != nil || version == store.Absent {
			return empty, err
		}
		r, err := c.parseRecord(text)
		r.version = version
		return r, err
	}
	f, err := os.Open(c.recordFile())
	if errors.Is(err, fs.ErrNotExist) {
		return empty, nil
	}
	if err != nil {
		return empty, fmt.Errorf("tokens: %w", err)
	}
	defer f.Close() //nolint:errcheck // only read from
	info, err := f.Stat()
	switch {
	case err != nil:
		return empty, fmt.Errorf("tokens: %w", err)
	case !info.Mode().IsRegular() || info.Size() > maxRecord:
		return empty, fmt.Errorf("tokens: %s is not a file of tokens", c.recordFile())
	case runtime.GOOS != "windows" && info.Mode().Perm()&0o077 != 0:
		return empty, fmt.Errorf("tokens: %s is accessible to other users (mode %v); delete it and run mcp-host login %s", c.recordFile(), info.Mode().Perm(), c.Server)
	}
	text, err := io.ReadAll(io.LimitReader(f, maxRecord))
	if err != nil {
		return empty, fmt.Errorf("tokens: %w", err)
	}
	return c.parseRecord(text)
}

// parseRecord returns the record in a text, or an error if that is damaged or of another server,
// account or subject.
func (c Config) parseRecord(text []byte) (record, error) {
	var r record
	if json.Unmarshal(text, &r) != nil || r.URL != c.URL || r.Account != c.Account || r.Subject != c.Subject {
		return record{URL: c.URL, Account: c.Account, Subject: c.Subject},
			fmt.Errorf("tokens: %s is damaged; delete it and run mcp-host login %s", c.File(), c.Server)
	}
	return r, nil
}

// subjectIn returns the subject in a record's file, "" if it has none or cannot be read.
func subjectIn(file string) string {
	f, err := os.Open(file)
	if err != nil {
		return ""
	}
	defer f.Close() //nolint:errcheck // only read from
	var r record
	if text, err := io.ReadAll(io.LimitReader(f, maxRecord)); err != nil || json.Unmarshal(text, &r) != nil {
		return ""
	}
	return r.Subject
}

// saveRecord stores the record, with its secrets encrypted if it has a key. It deletes the key of a
// record that is no longer encrypted. The caller holds the lock.
func (c Config) saveRecord(ctx context.Context, r record) (err error) {
	item := ""
	if r.Sealed != nil {
		item = r.Sealed.Item
		if c.Kind == InFile || !r.hasSecrets() {
			r.Sealed = nil
		} else if r, err = c.seal(ctx, r); err != nil {
			return err
		}
	}
	if err := c.replaceRecord(ctx, r); err != nil {
		return fmt.Errorf("tokens cannot be stored: %w", err)
	}
	if item != "" && r.Sealed == nil && c.Keyring != nil {
		return c.Keyring.Delete(ctx, item)
	}
	return nil
}

// replaceRecord writes the record as it is to its file or the store of the cluster,
// completely or not at all. In a cluster it returns CONFLICT if another host has changed
// the record.
func (c Config) replaceRecord(ctx context.Context, r record) error {
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	if shared, ok, err := c.clusterRecord(); err != nil {
		return err
	} else if ok {
		return shared.replace(context.WithoutCancel(ctx), text, r.version)
	}
	f, err := os.CreateTemp(c.recordsDir(), "new-*") // 0600
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) //nolint:errcheck // renamed, or of no use
	_, err = f.Write(append(text, '\n'))
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), c.recordFile())
}

// minFreeBytes is more than a record needs on the disk.
const minFreeBytes = 64 << 10

// checkRoom returns an error if a record could not be stored now, as on a full disk. A store of
// the cluster is not checked. The lock is held.
func (c Config) checkRoom() error {
	if c.Kind == InCluster {
		return nil
	}
	f, err := os.CreateTemp(c.recordsDir(), ".room-")
	if err != nil {
		return fmt.Errorf("tokens cannot be stored: %w", err)
	}
	_, err = f.Write(make([]byte, minFreeBytes))
	if err = errors.Join(err, f.Sync(), f.Close(), os.Remove(f.Name())); err != nil {
		return fmt.Errorf("tokens cannot be stored: %w", err)
	}
	return nil
}

// checkStorage returns an error if the record could not be locked and stored now.
func (c Config) checkStorage(ctx context.Context) error {
	unlock, err := c.lockRecord(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	return c.checkRoom()
}

// updateRecord changes the record under its lock. change gets the record as it is then, and reports
// whether to store it, also if it returns an error, which updateRecord returns.
func (c Config) updateRecord(ctx context.Context, change func(*record) (bool, error)) error {
	unlock, err := c.lockRecord(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	r, err := c.loadRecord(ctx)
	if err != nil {
		return err
	}
	changed, err := change(&r)
	if r.Tokens == nil {
		r.Tokens = r.ofOtherClient // of another server in the configuration, with another client
	}
	if changed {
		err = errors.Join(err, c.saveRecord(ctx, r))
	}
	return err
}

// lockRecord waits for the lock of the record, at most lockTimeout. The kernel frees it
// when the process ends. On a file system without locks, it excludes nobody. It returns an
// error if another process holds the lock longer.
func (c Config) lockRecord(ctx context.Context) (unlock func(), err error) {
	ctx, cancel := context.WithTimeout(ctx, lockTimeout)
	defer cancel()
	if shared, ok, err := c.clusterRecord(); err != nil {
		return nil, err
	} else if ok {
		return shared.lock(ctx)
	}
	if err := os.MkdirAll(c.recordsDir(), 0o700); err != nil {
		return nil, fmt.Errorf("tokens: %w", err)
	}
	f, err := os.OpenFile(c.recordFile()+".lock", os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("tokens: %w", err)
	}
	if _, err := filelock.Lock(ctx, f); err != nil {
		f.Close() //nolint:errcheck // nothing was written
		return nil, fmt.Errorf("tokens: another process holds the lock of %s: %w", c.recordFile(), err)
	}
	return func() {
		filelock.Unlock(f)
		f.Close() //nolint:errcheck // nothing was written
	}, nil
}

// Status returns the sign-in as it is stored, without asking the keyring. ok is false if
// there has been none.
func (c Config) Status() (a SignInStatus, ok bool, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), statusTimeout)
	defer cancel()
	r, err := c.readRecord(ctx)
	a = SignInStatus{Account: c.Account, Wanted: r.Wanted, Keyring: r.Sealed != nil}
	of := summaryOf(r.Tokens)
	if r.Sealed != nil {
		of = r.Sealed.Of
	}
	if of != nil && (c.ClientID == "" || of.ClientID == c.ClientID) {
		a.Issuer, a.Until, a.Refreshes, a.Scopes = of.Issuer, of.Expires, of.Refreshes || c.renewsAlone(), of.Scopes
		a.Refused = r.Refused
		a.SignedIn = a.Refreshes || of.Expires.IsZero() || time.Now().Before(of.Expires)
	}
	return a, of != nil || r.Asked != nil || len(r.Clients) > 0 || r.Sealed != nil || len(r.Wanted) > 0, err
}

// File returns the file that holds the tokens, or the name of the record in the store of the
// cluster.
func (c Config) File() string {
	if c.Kind == InCluster {
		return recordKeyPrefix + c.recordID()
	}
	return c.recordFile()
}
