package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// browserVariable is set for login, which starts the driver as its browser.
const browserVariable = "DRIVER_BROWSER"

// browse follows an address as a browser whose user agrees to everything.
func browse(address string) error {
	res, err := http.Get(address)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	_, err = io.Copy(io.Discard, res.Body)
	return err
}

// identity returns the OAuth client for the sign-in: the one that the suite provides,
// or the client metadata document that its servers accept. dir is for files.
func identity(dir string) (map[string]any, error) {
	var given struct {
		ID     string `json:"client_id"`
		Secret string `json:"client_secret"`
		Key    string `json:"private_key_pem"`
		KeyAlg string `json:"signing_algorithm"`
		JWT    string `json:"valid_jwt"`
		IDP    string `json:"idp_issuer"`
		IDPID  string `json:"idp_client_id"`
		Token  string `json:"idp_id_token"`
	}
	if text := os.Getenv("MCP_CONFORMANCE_CONTEXT"); text != "" {
		if err := json.Unmarshal([]byte(text), &given); err != nil {
			return nil, err
		}
	}
	if strings.HasPrefix(os.Getenv("MCP_CONFORMANCE_SCENARIO"), "auth/client-credentials-") {
		oauth := map[string]any{"client_id": given.ID, "grant": "client_credentials"}
		if given.Key != "" {
			oauth["private_key"], oauth["key_algorithm"] = given.Key, given.KeyAlg
		} else {
			oauth["client_secret"] = given.Secret
		}
		return oauth, nil
	}
	if given.Token != "" {
		file := filepath.Join(dir, "id-token")
		return map[string]any{
			"client_id": given.ID, "client_secret": given.Secret, "grant": "id_jag", "assertion_file": file,
			"identity_provider": map[string]any{"issuer": given.IDP, "client_id": given.IDPID},
		}, os.WriteFile(file, []byte(given.Token), 0o600)
	}
	if given.JWT != "" {
		file := filepath.Join(dir, "jwt")
		return map[string]any{"client_id": given.ID, "grant": "jwt_bearer", "assertion_file": file}, os.WriteFile(file, []byte(given.JWT), 0o600)
	}
	if given.ID != "" {
		return map[string]any{"client_id": given.ID, "client_secret": given.Secret}, nil
	}
	oauth := map[string]any{"client_metadata_url": "https://conformance-test.local/client-metadata.json"}
	if strings.HasPrefix(os.Getenv("MCP_CONFORMANCE_SCENARIO"), "auth/dpop") {
		oauth["dpop"] = true // the resource's metadata does not require it
	}
	return oauth, nil
}

// waits reports whether the running host says that the server needs a sign-in.
func waits(host, state string) bool {
	out, err := exec.Command(host, "servers", "suite", "--json", "--state", state).Output()
	return err == nil && strings.Contains(string(out), `"state":"needs sign-in"`)
}

// login signs in to the suite's server.
func login(host, config, state string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	cmd := exec.Command(host, "login", "suite", "--config", config, "--state", state, "--timeout", "30s")
	cmd.Env = append(os.Environ(), browserVariable+"=1", "BROWSER="+self)
	cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
	return cmd.Run()
}

// maxSignIns bounds the sign-ins for one request. The host has its own, lower bound.
const maxSignIns = 10

// callSigningIn makes the calls in order and signs in when an answer asks for it.
func (c *client) callSigningIn(calls []map[string]any, login func() error) error {
	var failures []error
	for _, call := range calls {
		for range maxSignIns {
			result, err := c.request("tools/call", call)
			fmt.Println("tools/call", call["name"], string(result), err)
			if err == nil && !strings.Contains(string(result), "mcp-host login") {
				break
			}
			if err != nil && !strings.Contains(err.Error(), "mcp-host login") {
				failures = append(failures, err)
				break
			}
			if err := login(); err != nil {
				return errors.Join(append(failures, err)...)
			}
		}
	}
	return errors.Join(failures...)
}
