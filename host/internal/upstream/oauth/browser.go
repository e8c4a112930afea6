package oauth

import (
	"errors"
	"fmt"
	"net/url"
	"os/exec"
	"runtime"
	"slices"
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
// first program of the variable BROWSER that starts, else the system's. It does not wait for the
// browser. It returns an error if no program starts, the address must not be opened, or a command
// passes it to a shell.
func OpenBrowser(browser, address string) error {
	address, err := BrowserURL(address)
	if err != nil {
		return err
	}
	commands, refused := browserCommands(browser, address)
	switch {
	case refused != nil: // xdg-open reads BROWSER, too
	case runtime.GOOS == "darwin":
		commands = append(commands, []string{"open", address})
	case runtime.GOOS == "windows":
		commands = append(commands, []string{"rundll32", "url.dll,FileProtocolHandler", address})
	default:
		commands = append(commands, []string{"xdg-open", address})
	}
	for _, command := range commands {
		cmd := exec.Command(command[0], command[1:]...)
		if startErr := cmd.Start(); startErr != nil {
			if err == nil { // the first one is what the user has chosen
				err = startErr
			}
			continue
		}
		go cmd.Wait() //nolint:errcheck // it may run as long as the user wants
		return nil
	}
	if refused != nil {
		return refused
	}
	return fmt.Errorf("the browser cannot be started: %w", err)
}

// browserCommands returns the commands in a value of BROWSER, with the address as argument in place of
// %s, or at the end: as xdg-open and Python read it, a list of commands with a colon between them. On
// Windows, where paths contain colons, it is one command. At a command that passes the address to a
// shell it returns the commands before it and an error.
func browserCommands(browser, address string) (commands [][]string, refused error) {
	entries := []string{browser}
	if runtime.GOOS != "windows" {
		entries = strings.Split(browser, ":")
	}
	for _, entry := range entries {
		command := []string{entry}
		if _, err := exec.LookPath(entry); err != nil { // otherwise it is a path, which can contain spaces
			command = splitWords(entry)
		}
		if len(command) == 0 || command[0] == "" {
			continue
		}
		if usesShell(command) {
			return commands, fmt.Errorf("the command %.200q of BROWSER is not started: it passes the address to a shell, which can run parts of it as commands", entry)
		}
		named := false
		for i, word := range command[1:] {
			if strings.Contains(word, "%s") {
				command[i+1], named = strings.ReplaceAll(word, "%s", address), true
			}
		}
		if !named {
			command = append(command, address)
		}
		commands = append(commands, command)
	}
	return commands, nil
}

// shells are programs that interpret their arguments as commands; ssh has them interpreted on
// another machine.
var shells = []string{"sh", "bash", "dash", "ash", "zsh", "ksh", "mksh", "fish", "csh", "tcsh", "cmd", "powershell", "pwsh", "ssh"}

// usesShell reports whether a command passes the address to a shell: its program is one, or a batch
// file, which Windows runs with one; or %s is part of a longer word that contains a space or belongs to an option
// -c, as in env sh -c 'firefox %s'. An address of a server may contain & and other characters that a shell interprets.
func usesShell(command []string) bool {
	program := command[0]
	if path, err := exec.LookPath(program); err == nil {
		program = path // with the extension that Windows has added
	}
	name := strings.ToLower(program[strings.LastIndexAny(program, `/\\`)+1:])
	if slices.Contains(shells, strings.TrimSuffix(name, ".exe")) || strings.HasSuffix(name, ".bat") || strings.HasSuffix(name, ".cmd") {
		return true
	}
	for i, word := range command {
		if i == 0 || word == "%s" || !strings.Contains(word, "%s") {
			continue
		}
		if strings.ContainsAny(word, " \t\n") || slices.Contains(command[1:i], "-c") {
			return true
		}
	}
	return false
}

// splitWords splits a command at spaces outside quotation marks, which it removes. No other
// character has a meaning.
func splitWords(command string) (words []string) {
	var word strings.Builder
	var quote rune
	begun := false
	for _, c := range command {
		switch {
		case quote != 0 && c == quote:
			quote = 0
		case quote == 0 && (c == '"' || c == '\''):
			quote, begun = c, true
		case quote == 0 && (c == ' ' || c == '\t'):
			if begun {
				words, begun = append(words, word.String()), false
				word.Reset()
			}
		default:
			word.WriteRune(c)
			begun = true
		}
	}
	if begun {
		words = append(words, word.String())
	}
	return words
}
