package gateway

import (
	"context"
	"errors"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"
)

// Shutdown stops a server of NewHTTPServer and ends the sessions of its handler. Streams
// end at once. Calls get two seconds to finish. Calls that are still running are then
// cancelled and answered with an error, and after one more second their connections are
// closed.
func Shutdown(server *http.Server, handler *HTTPHandler) error {
	within := func(d time.Duration) error {
		ctx, cancel := context.WithTimeout(context.Background(), d)
		defer cancel()
		return errors.Join(handler.Close(ctx), server.Shutdown(ctx))
	}
	err := within(2 * time.Second)
	if errors.Is(err, context.DeadlineExceeded) {
		handler.Abort()
		err = within(time.Second)
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return server.Close()
	}
	return err
}

// HostNames returns the values of the header Host that the handler accepts: those that
// name a server that listens at listen (HOST:PORT) with the address addr, and those of
// extra (NAME or NAME:PORT). Other values are refused, so that a web page whose name was
// made to resolve to this machine cannot send requests (DNS rebinding).
func HostNames(listen string, addr net.Addr, extra []string) []string {
	_, port, err := net.SplitHostPort(addr.String())
	if err != nil {
		return nil
	}
	names := []string{"localhost", "127.0.0.1", "::1"}
	host, _, err := net.SplitHostPort(listen)
	if ip := net.ParseIP(host); err == nil && host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		names = append(names, host)
		if name, err := os.Hostname(); err == nil {
			names = append(names, name)
		}
		if host == "" || ip != nil && ip.IsUnspecified() {
			if addrs, err := net.InterfaceAddrs(); err == nil {
				for _, a := range addrs {
					if ipnet, ok := a.(*net.IPNet); ok {
						names = append(names, ipnet.IP.String())
					}
				}
			}
		}
	}
	var hosts []string
	for _, name := range slices.Concat(names, extra) {
		if name == "" {
			continue
		}
		if _, _, err := net.SplitHostPort(name); err == nil {
			hosts = append(hosts, strings.ToLower(name))
			continue
		}
		hosts = append(hosts, strings.ToLower(net.JoinHostPort(name, port)))
		if port == "80" {
			hosts = append(hosts, strings.ToLower(name))
		}
	}
	return hosts
}
