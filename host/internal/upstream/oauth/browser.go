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
// browser: http or https, without user and without characters that a shell would interpret, except &
// between the parameters. It returns an error for other addresses.
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
	inQuery := false
	for _, c := range []byte(u.String()) {
		inQuery = (inQuery || c == '?' && u.RawQuery != "") && c != '#'
		if c == '&' && !inQuery || c <= ' ' || c > '~' || strings.IndexByte("\"'`$();|<>\\^{}*!", c) >= 0 {
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
// Windows, where paths contain colons, it is one command. At a command that can run parts of the address
// it returns the commands before it and an error.
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
		if !slices.ContainsFunc(command, func(word string) bool { return strings.Contains(word, "%s") }) {
			command = append(command, "%s")
		}
		if canRunAddress(command) {
			return commands, fmt.Errorf("the command %.200q of BROWSER is not started: it passes the address to a shell or another program that can run parts of it as commands; write %%s as an argument of a browser", entry)
		}
		for i, word := range command {
			command[i] = strings.ReplaceAll(word, "%s", address)
		}
		commands = append(commands, command)
	}
	return commands, nil
}

// shells are programs that interpret an argument as commands, or have it interpreted, as on another
// machine. Versions are left out: ksh stands for ksh93.
var shells = []string{
	"sh", "bash", "dash", "ash", "zsh", "ksh", "mksh", "fish", "csh", "tcsh", "cmd", "powershell", "pwsh", "busybox",
	"ssh", "autossh", "sshpass", "mosh", "plink", "rsh", "su", "eval", "awk", "gawk", "mawk", "xargs", "parallel", "watch", "script", "expect",
	"tmux", "i3-msg", "swaymsg", "hyprctl", "mshta",
}

// interpreters are programs that interpret an argument as a program if it follows an option.
var interpreters = []string{"perl", "python", "pypy", "ruby", "node", "nodejs", "deno", "bun", "php", "lua", "luajit", "tclsh", "guile", "osascript", "emacsclient"}

// commandOptions are the options and subcommands of other programs, such as terminals, that take a command.
var commandOptions = []string{"-e", "--command", "--execute", "exec"}

// isOptionWithAddress reports whether a word is an option whose whole value is the address.
func isOptionWithAddress(word string) bool {
	name, value, ok := strings.Cut(word, "=")
	return ok && value == "%s" && strings.HasPrefix(name, "-") && !strings.ContainsFunc(name, func(r rune) bool {
		return !strings.ContainsRune("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_", r)
	})
}

// canRunAddress reports whether a command with %s in place of the address can run parts of it: an
// address of a server may contain & and other characters with a meaning for a shell. It permits %s only
// as a whole argument, or as the value of an option. It refuses commands that name a shell or a batch
// file, which Windows runs with one, also as an argument, as in env ssh laptop xdg-open %s;
// interpreters with an option; and %s after an option that takes a command.
func canRunAddress(command []string) bool {
	for i, word := range command {
		name := programName(word, i == 0)
		switch {
		case strings.Contains(word, "%s"):
			if i == 0 || word != "%s" && !isOptionWithAddress(word) || slices.Contains(commandOptions, command[i-1]) {
				return true
			}
		case i > 0 && strings.HasPrefix(word, "-"):
		case slices.Contains(shells, name), strings.HasSuffix(name, ".bat"), strings.HasSuffix(name, ".cmd"):
			return true
		case slices.Contains(interpreters, name):
			if next := command[min(i+1, len(command)-1)]; next != "-m" && (strings.HasPrefix(next, "-") || next == "%s") {
				return true
			}
		}
	}
	return false
}

// programName returns the name of a program without its directory, .exe and version, in lower case;
// with first also with the extension that Windows adds.
func programName(word string, first bool) string {
	if path, err := exec.LookPath(word); first && err == nil {
		word = path
	}
	name := strings.ToLower(word[strings.LastIndexAny(word, `/\`)+1:])
	return strings.TrimRight(strings.TrimSuffix(name, ".exe"), "0123456789.")
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
