package oauth

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"time"

	"github.com/toolroom-mcp/toolroom/host/internal/keyring"
	"github.com/toolroom-mcp/toolroom/host/internal/store"
)

// Keyring stores keys in the keyring of the system. Get returns keyring.ErrNotFound for a
// key that it does not have.
type Keyring interface {
	Get(ctx context.Context, item string) (secret string, err error)
	Set(ctx context.Context, item, secret string) error
	Delete(ctx context.Context, item string) error
}

// The values of Storage.Kind.
const (
	InKeyring = "keyring" // a sign-in fails without a keyring
	InFile    = "file"
	InCluster = "cluster" // in Storage.Shared
)

// Storage says where the tokens of sign-ins are stored.
//
// The record of a sign-in is a file. If the system has a keyring, the tokens in the file are
// encrypted with a key that is in the keyring. The tokens themselves are not in the keyring:
// Windows accepts at most 2.5 KB there, which many tokens exceed, and a refresh would have
// to replace two things at once.
type Storage struct {
	State   string     // the state directory; records are in its directory "oauth"
	Kind    string     // InKeyring, InFile or InCluster; "": in the keyring if it can be used, else in the file
	Keyring Keyring    // nil: there is none
	Shared  store.Keys // of the store of a cluster; nil: there is none

	Refreshes *Refreshes // gets the refreshes, so that the process can wait for them at its end; nil: Source.Close waits
}

// sealed holds the tokens of a record, encrypted.
type sealed struct {
	Item string   `json:"keyring_item"` // name of the key
	Data []byte   `json:"data"`         // secrets, in JSON, with AES-256-GCM
	Of   *summary `json:"tokens,omitempty"`
}

// secrets is the encrypted part of a record.
type secrets struct {
	Clients map[string]registration `json:"clients,omitempty"`
	Tokens  *tokens                 `json:"tokens,omitempty"`
	Former  []tokens                `json:"former,omitempty"`
}

// summary is the part of tokens that can be shown without the key. It is used for nothing
// else, because it is not protected against changes.
type summary struct {
	Issuer    string    `json:"issuer"`
	ClientID  string    `json:"client_id"`
	Expires   time.Time `json:"expires,omitzero"`
	Refreshes bool      `json:"refreshes"`
	Scopes    []string  `json:"scopes,omitempty"`
}

// summaryOf returns the summary of tokens; nil for nil.
func summaryOf(t *tokens) *summary {
	if t == nil {
		return nil
	}
	return &summary{Issuer: t.Issuer, ClientID: t.Client.ClientID, Expires: t.Expires, Refreshes: t.Refresh != "", Scopes: t.Scopes}
}

// keyringError says that the key of a record cannot be read.
type keyringError struct {
	server string
	cause  error
}

func (e *keyringError) Error() string {
	return fmt.Sprintf("the tokens of server %s are encrypted with a key in the keyring of the system, which cannot be read: %v; unlock the keyring, or run mcp-host login %s --token-store file",
		e.server, e.cause, e.server)
}
func (e *keyringError) Unwrap() error { return e.cause }

// unseal decrypts the tokens of a record. If the keyring does not have the key, the tokens
// are lost, and the record becomes one that needs a sign-in. It returns a keyringError if
// the keyring cannot be read; then the record is without its tokens.
func (c Config) unseal(ctx context.Context, r *record) error {
	if r.Sealed == nil {
		return nil
	}
	if c.Keyring == nil {
		return &keyringError{c.Server, errNoKeyring}
	}
	text, err := c.Keyring.Get(ctx, r.Sealed.Item)
	if errors.Is(err, keyring.ErrNotFound) {
		r.Sealed = nil
		return nil
	}
	if err != nil {
		return &keyringError{c.Server, err}
	}
	damaged := fmt.Errorf("tokens: %s is damaged; delete it and run mcp-host login %s", c.recordFile(), c.Server)
	aead, err := newAEAD(text)
	if err != nil {
		return damaged
	}
	plain, err := aead.Open(nil, nil, r.Sealed.Data, c.authenticatedData())
	var s secrets
	if err != nil || json.Unmarshal(plain, &s) != nil {
		return damaged
	}
	r.Clients, r.Tokens, r.Former = s.Clients, s.Tokens, s.Former
	return nil
}

// seal returns the record with its tokens encrypted by its key. It returns a keyringError if the key
// cannot be read.
func (c Config) seal(ctx context.Context, r record) (record, error) {
	text, err := c.Keyring.Get(ctx, r.Sealed.Item)
	if err != nil {
		return r, &keyringError{c.Server, err}
	}
	aead, err := newAEAD(text)
	if err != nil {
		return r, err
	}
	plain, err := json.Marshal(secrets{r.Clients, r.Tokens, r.Former})
	if err != nil {
		return r, err
	}
	r.Sealed = &sealed{Item: r.Sealed.Item, Data: aead.Seal(nil, nil, plain, c.authenticatedData()), Of: summaryOf(r.Tokens)}
	r.Clients, r.Tokens, r.Former = nil, nil, nil
	return r, nil
}

// authenticatedData returns the data that is authenticated with the tokens, so that a record cannot be
// used for another server, account or user.
func (c Config) authenticatedData() []byte {
	return []byte(c.URL + "\x00" + c.Account + "\x00" + c.Subject)
}

// newAEAD returns AES-256-GCM with a key in base64; an error for a malformed key.
func newAEAD(text string) (cipher.AEAD, error) {
	key, err := base64.RawStdEncoding.DecodeString(text)
	if err != nil {
		return nil, err
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	return cipher.NewGCMWithRandomNonce(block)
}

// newKeyringItem stores a new key in the keyring and returns the name of its item, not the
// key. It returns errNoKeyring without a keyring, and the error of the keyring.
func (c Config) newKeyringItem(ctx context.Context) (string, error) {
	if c.Keyring == nil {
		return "", errNoKeyring
	}
	var key [32]byte
	rand.Read(key[:]) //nolint:errcheck // never fails
	name := c.Server
	if u, err := url.Parse(c.URL); err == nil {
		name = u.Host
	}
	if c.Account != "" {
		name += " " + c.Account
	}
	item := fmt.Sprintf("%.200s %s", name, rand.Text()[:13])
	text := base64.RawStdEncoding.EncodeToString(key[:])
	if err := c.Keyring.Set(ctx, item, text); err != nil {
		return "", err
	}
	return item, nil
}

// checkKeyring returns an error if tokens must be in the keyring and it cannot be used, so
// that nobody signs in in vain.
func (c Config) checkKeyring(ctx context.Context) error {
	if c.Kind != InKeyring {
		return nil
	}
	err := errNoKeyring
	if c.Keyring != nil {
		_, err = c.Keyring.Get(ctx, "test")
	}
	if err == nil || errors.Is(err, keyring.ErrNotFound) {
		return nil
	}
	return mustBeInKeyring(err)
}

// errNoKeyring means that the configuration has no keyring.
var errNoKeyring = errors.New("this program does not use it")

// mustBeInKeyring returns the error for tokens that may be stored only in a keyring, which cannot be
// used.
func mustBeInKeyring(cause error) error {
	return fmt.Errorf("the tokens cannot be stored: the keyring of the system cannot be used: %w; set token_store to file or auto to store them in a file", cause)
}

// chooseStorage decides whether the tokens of a new sign-in are encrypted with a key in the keyring,
// and sets r.Sealed if so. unused is the reason why they are not; nil: they are, or the
// configuration says so. err means that they must be and cannot.
func (c Config) chooseStorage(ctx context.Context, r *record) (unused, err error) {
	if c.Kind == InFile || c.Kind == InCluster || r.Sealed != nil { // the key could be read
		return nil, nil
	}
	item, err := c.newKeyringItem(ctx)
	switch {
	case err == nil:
		r.Sealed = &sealed{Item: item}
		return nil, nil
	case c.Kind == InKeyring:
		return nil, mustBeInKeyring(err)
	}
	return err, nil
}
