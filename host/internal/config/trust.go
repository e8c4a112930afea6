package config

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"

	"github.com/toolroom-mcp/toolroom/host/internal/config/trust"
)

// trustFile returns the path of the file in the state directory with the hashes of
// trusted files.
func trustFile(state string) string { return filepath.Join(state, "trusted.json") }

// readTrust returns the trusted hashes. The keys are the path of a configuration (→ SHA-256
// of its content), objectKey (→ trust.StateOf) and rootKey (→ SHA-256 of the
// configuration). Without the file there are none. It returns an error without a state
// directory, or for a damaged file.
func readTrust(state string) (map[string]string, error) {
	trusted := map[string]string{}
	if state == "" {
		return nil, errors.New("no directory for trusted configurations: set --state, MCP_STATE_DIR or HOME")
	}
	text, err := os.ReadFile(trustFile(state))
	if errors.Is(err, fs.ErrNotExist) {
		return trusted, nil
	}
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(text, &trusted); err != nil {
		return nil, fmt.Errorf("%s is damaged; delete it and run mcp-host config trust again", trustFile(state))
	}
	return trusted, nil
}

// checkTrust returns an error if a file must not be used: a cloned repository must not
// start programs, and neither must a configuration that has changed since the user
// trusted it. text is the content that will be used, so that it cannot change in
// between.
func (c *Config) checkTrust(name string, text []byte) error {
	trusted, err := readTrust(c.State)
	if err != nil {
		return err
	}
	hash, ok := trusted[trustKey(name)]
	switch {
	case !ok:
		return fmt.Errorf("not trusted; inspect it with mcp-host config check %s, then run mcp-host config trust", filepath.Base(name))
	case hash != contentHash(text):
		return fmt.Errorf("not trusted: changed since it was trusted; inspect it with mcp-host config check %s, then run mcp-host config trust", filepath.Base(name))
	}
	return nil
}

// contentHash returns the hash of a file's content that the trust records hold.
func contentHash(text []byte) string {
	return trust.StateOfContent(text)
}

// trustKey returns the name under which a file is trusted: its path with the links of
// its directory resolved. It does not resolve a link that the file itself is. If the
// directory cannot be resolved, it returns name.
func trustKey(name string) string {
	dir, err := filepath.EvalSymlinks(filepath.Dir(name))
	if err != nil {
		return name
	}
	return filepath.Join(dir, filepath.Base(name))
}

// Trust records in a state directory that the user trusts a file with this content. It
// removes the records of the files that its former content referred to. It returns an error
// if the records cannot be read or written.
func Trust(state, name string, text []byte) error {
	return changeTrust(state, func(trusted map[string]string) {
		forgetTrusted(trusted, name)
		trusted[trustKey(name)] = contentHash(text)
	})
}

// Untrust removes the records of a file and of the files that it referred to. It is no
// error if there are none.
func Untrust(state, name string) error {
	return changeTrust(state, func(trusted map[string]string) { forgetTrusted(trusted, name) })
}

// forgetTrusted removes from trusted the hashes of a file and of the files that it referred to.
func forgetTrusted(trusted map[string]string, name string) {
	key := trustKey(name)
	maps.DeleteFunc(trusted, func(known, _ string) bool { return known == key || strings.HasPrefix(known, key+"\n") })
}

// changeTrust applies change to the trusted hashes and stores them. It returns an error if they
// cannot be read or written; then nothing changes.
func changeTrust(state string, change func(trusted map[string]string)) error {
	if _, err := readTrust(state); err != nil { // before a directory is created
		return err
	}
	end, err := BeginChange(trustFile(state))
	if err != nil {
		return err
	}
	defer end()
	trusted, err := readTrust(state)
	if err != nil {
		return err
	}
	change(trusted)
	raw, err := json.MarshalIndent(trusted, "", "  ")
	if err != nil {
		return err
	}
	return ReplaceFile(trustFile(state), append(raw, '\n'))
}
