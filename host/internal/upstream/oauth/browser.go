package oauth

import (
	"errors"
	"fmt"
	"net/url"
	"os/exec"
	"runtime"
	"strings"
)

// BrowserURL checks an address that a server named and returns it as it may be given to a
// browser: http or https, without user and without characters that a shell would interpret.
// It returns an error for other addresses.
func BrowserURL(address string) (string, error) {
	u, err := url.Parse(address)
	switch {
	case err != nil:
		return "", errors.New("the address for the browser is malformed")
	case u.Scheme != "http" && u.Scheme != "https":
		return "", fmt.Errorf("the address for the browser has the scheme %.40q; only http and https are opened", u.Scheme)
	case u.Host == "" || u.User != nil || u.Opaque != "":
		return "", errors.New("the address for the browser has no plain host")
	case strings.ContainsFunc(u.Host, func(r rune) bool {
		return r > '~' || !strings.ContainsRune("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-:[]_", r)
	}):
		return "", fmt.Errorf("the address for the browser has an invalid host: %.100q", u.Host)
	}
	var b strings.Builder
	for _, c := range []byte(u.String()) {
		if c <= ' ' || c > '~' || strings.IndexByte("\"'`$();|<>\\^{}*!", c) >= 0 {
			fmt.Fprintf(&b, "%%%02X", c)
			continue
		}
		b.WriteByte(c)
	}
	return b.String(), nil
}

// OpenBrowser starts the browser with an address, as an argument and without a shell: the
// first program that the variable BROWSER names, or the system's. It does not wait for the
// browser. It returns an error if the program does not start or the address must not be
// opened.
func OpenBrowser(browser, address string) error {
	address, err := BrowserURL(address)
	if err != nil {
		return err
	}
	var command []string
	switch {
	case browser != "":
		program := browser
		if runtime.GOOS != "windows" { // where a colon is part of a path
			program, _, _ = strings.Cut(browser, ":")
		}
		command = []string{program}
	case runtime.GOOS == "darwin":
		command = []string{"open"}
	case runtime.GOOS == "windows":
		command = []string{"rundll32", "url.dll,FileProtocolHandler"}
	default:
		command = []string{"xdg-open"}
	}
	cmd := exec.Command(command[0], append(command[1:], address)...)
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("the browser cannot be started: %w", err)
	}
	go cmd.Wait() //nolint:errcheck // it may run as long as the user wants
	return nil
}
