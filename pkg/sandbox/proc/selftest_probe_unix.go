//go:build unix

package proc

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"syscall"
)

// runPortableProbe reads the probeTargets from standard input, tries what each system can
// try, prints the checks as JSON, and returns the exit code.
func runPortableProbe() int {
	p := &prober{}
	if err := json.NewDecoder(os.Stdin).Decode(&p.probeTargets); err != nil {
		fmt.Println(err)
		return 2
	}
	p.checkPortably()
	if err := json.NewEncoder(os.Stdout).Encode(p.checks); err != nil {
		return 2
	}
	return 0
}

// checkPortably tries accesses to files, sockets and the server.
func (p *prober) checkPortably() {
	inside := filepath.Join(p.Root, "file")
	p.recordAllowed("write in roots", os.WriteFile(inside, []byte("x"), 0o600))
	temp, err := os.CreateTemp("", "probe")
	if p.recordAllowed("write in TMPDIR", err); err == nil {
		temp.Close()
	}
	_, err = os.ReadFile("/usr/bin/env")
	p.recordAllowed("read programs", err)
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if p.recordAllowed("use /dev/null", err); err == nil {
		null.Close()
	}
	outside := filepath.Join(p.OutsideDir, p.Mark)
	p.recordBlocked("write outside", true, os.WriteFile(outside, []byte("x"), 0o600))
	p.recordBlocked("make a directory outside", true, os.Mkdir(outside+"-dir", 0o700))
	p.recordBlocked("change modes outside", true, os.Chmod(filepath.Join(p.OutsideDir, "file"), 0o644))
	p.recordBlocked("move out of a root", true, os.Rename(inside, outside+"-moved"))
	p.recordBlocked("write in a read-only root", true, os.WriteFile(filepath.Join(p.ReadOnlyRoot, p.Mark), []byte("x"), 0o600))
	_, err = os.ReadFile(filepath.Join(p.SecretDir, "key"))
	p.recordBlocked("read secrets", true, err)
	p.recordBlocked("connect by TCP", !p.Network, dial("tcp", p.TCP))
	if p.NamedSocket != "" {
		p.recordBlocked("connect to a unix socket", !p.Network, dial("unix", p.NamedSocket))
	}
	if server, err := os.FindProcess(p.ServerPID); err == nil {
		p.recordBlocked("signal the server", true, server.Signal(syscall.SIGCONT))
	}
}

// makePortableTargets makes what runPortableProbe tries to access in dir, and listeners.
// The caller must call closeListeners, even with an error. network says that commands
// have the network.
func makePortableTargets(dir string, level Level, network bool) (b probeTargets, closeListeners func(), err error) {
	b = probeTargets{
		Level: level, Network: network, Root: filepath.Join(dir, "root"), ReadOnlyRoot: filepath.Join(dir, "ro"), OutsideDir: filepath.Join(dir, "outside"),
		SecretDir: filepath.Join(dir, "root", "secret"), ServerPID: os.Getpid(), Mark: "toolroom-selftest",
	}
	for _, made := range []string{b.Root, b.ReadOnlyRoot, b.OutsideDir, b.SecretDir, filepath.Join(dir, "own")} {
		err = errors.Join(err, os.Mkdir(made, 0o700))
	}
	err = errors.Join(err, os.WriteFile(filepath.Join(b.SecretDir, "key"), []byte("secret"), 0o600), os.WriteFile(filepath.Join(b.OutsideDir, "file"), []byte("outside"), 0o600))
	var listeners []net.Listener
	listen := func(network, address string) {
		l, listenErr := net.Listen(network, address)
		if err = errors.Join(err, listenErr); listenErr == nil {
			listeners = append(listeners, l)
		}
	}
	if listen("tcp", "127.0.0.1:0"); len(listeners) > 0 {
		b.TCP = listeners[0].Addr().String()
	}
	if name := filepath.Join(b.OutsideDir, "s"); len(name) < 104 { // sun_path of macOS
		b.NamedSocket = name
		listen("unix", name)
	}
	return b, func() {
		for _, l := range listeners {
			l.Close()
		}
	}, err
}
