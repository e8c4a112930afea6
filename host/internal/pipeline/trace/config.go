package trace

import (
	"encoding/binary"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// Config holds the settings of tracing. With the zero value, tracing is off.
type Config struct {
	URL      string            // address of the collector; "": tracing is off
	Headers  map[string]string // of each request; they can contain credentials
	Timeout  time.Duration     // of a request
	Resource map[string]string // attributes of this host
	Sampler  Sampler
	Queue    int           // largest number of waiting spans
	Batch    int           // number of spans in a request
	Delay    time.Duration // time that a span waits for others
}

// A Sampler chooses the calls that are traced.
type Sampler struct {
	Parent bool    // follow the caller's decision if there is one
	Ratio  float64 // share of the other calls, from 0 to 1
}

// samples reports whether the spans of a trace are sent. known says that parent is the
// caller's span.
func (s Sampler) samples(trace [16]byte, parent spanContext, known bool) bool {
	if known && s.Parent {
		return parent.sampled
	}
	// Every host with this ratio makes the same decision for a trace.
	return float64(binary.BigEndian.Uint64(trace[8:])>>11) < s.Ratio*(1<<53)
}

// IsOn reports whether tracing is on.
func (c Config) IsOn() bool { return c.URL != "" }

// FromEnv reads the variables that OpenTelemetry specifies. On an error
// tracing is off.
func FromEnv(getenv func(string) string) (Config, error) {
	of := func(name string) string { return strings.TrimSpace(getenv(name)) }
	first := func(names ...string) string {
		for _, name := range names {
			if value := of(name); value != "" {
				return value
			}
		}
		return ""
	}
	c := Config{URL: of("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")}
	if base := of("OTEL_EXPORTER_OTLP_ENDPOINT"); c.URL == "" && base != "" {
		c.URL = strings.TrimSuffix(base, "/") + "/v1/traces"
	}
	if c.URL == "" || strings.EqualFold(of("OTEL_SDK_DISABLED"), "true") || of("OTEL_TRACES_EXPORTER") == "none" {
		return Config{}, nil
	}
	u, err := url.Parse(c.URL)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return Config{}, fmt.Errorf("tracing is off: OTEL_EXPORTER_OTLP_ENDPOINT is not an http or https URL")
	}
	// JSON is sent instead of protobuf: receivers of OTLP over HTTP accept both.
	if protocol := first("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL"); protocol == "grpc" {
		return Config{}, fmt.Errorf("tracing is off: OTEL_EXPORTER_OTLP_PROTOCOL is grpc; use http/json and the collector's port for HTTP, usually 4318")
	}
	if c.Headers, err = parsePairs(first("OTEL_EXPORTER_OTLP_TRACES_HEADERS", "OTEL_EXPORTER_OTLP_HEADERS")); err != nil {
		return Config{}, fmt.Errorf("tracing is off: OTEL_EXPORTER_OTLP_HEADERS: %w", err)
	}
	if c.Resource, err = parsePairs(of("OTEL_RESOURCE_ATTRIBUTES")); err != nil {
		return Config{}, fmt.Errorf("tracing is off: OTEL_RESOURCE_ATTRIBUTES: %w", err)
	}
	if name := of("OTEL_SERVICE_NAME"); name != "" {
		c.Resource["service.name"] = name
	} else if c.Resource["service.name"] == "" {
		c.Resource["service.name"] = "mcp-host"
	}
	if c.Sampler, err = parseSampler(of("OTEL_TRACES_SAMPLER"), of("OTEL_TRACES_SAMPLER_ARG")); err != nil {
		return Config{}, fmt.Errorf("tracing is off: %w", err)
	}
	c.Timeout = parseMilliseconds(first("OTEL_EXPORTER_OTLP_TRACES_TIMEOUT", "OTEL_EXPORTER_OTLP_TIMEOUT"), 10*time.Second, time.Minute)
	c.Delay = parseMilliseconds(of("OTEL_BSP_SCHEDULE_DELAY"), 5*time.Second, time.Minute)
	c.Queue = parseNumber(of("OTEL_BSP_MAX_QUEUE_SIZE"), 2048, 1<<16)
	c.Batch = min(c.Queue, parseNumber(of("OTEL_BSP_MAX_EXPORT_BATCH_SIZE"), 512, 4096))
	return c, nil
}

// parseSampler parses OTEL_TRACES_SAMPLER and its argument, and returns an error for an
// unknown sampler or a wrong argument. By default, all traces are sampled unless the
// caller's is not.
func parseSampler(name, arg string) (Sampler, error) {
	base, parent := strings.CutPrefix(name, "parentbased_")
	s := Sampler{Parent: parent, Ratio: 1}
	switch base {
	case "":
		s.Parent = true
	case "always_on":
	case "always_off":
		s.Ratio = 0
	case "traceidratio":
		if arg == "" {
			break
		}
		ratio, err := strconv.ParseFloat(arg, 64)
		if err != nil || !(ratio >= 0 && ratio <= 1) {
			return s, fmt.Errorf("OTEL_TRACES_SAMPLER_ARG %q is not a number from 0 to 1", arg)
		}
		s.Ratio = ratio
	default:
		return s, fmt.Errorf("OTEL_TRACES_SAMPLER %q is not one of always_on, always_off, traceidratio, or parentbased_ and one of these", name)
	}
	return s, nil
}

// parsePairs parses name=value,name=value with URL-escaped values. It returns an error for
// an entry of another form, without its text, which can be a secret.
func parsePairs(text string) (map[string]string, error) {
	out := map[string]string{}
	for i, pair := range strings.Split(text, ",") {
		if pair = strings.TrimSpace(pair); pair == "" {
			continue
		}
		name, value, ok := strings.Cut(pair, "=")
		name = strings.TrimSpace(name)
		value, err := url.PathUnescape(strings.TrimSpace(value))
		if !ok || name == "" || err != nil || strings.ContainsAny(name+value, "\r\n") {
			return nil, fmt.Errorf("the entry %d is not name=value", i+1) // without the text, which can be a secret
		}
		out[name] = value
	}
	return out, nil
}

// parseMilliseconds returns the duration in a text, at most most; otherwise if it is not a
// number above 0.
func parseMilliseconds(text string, otherwise, most time.Duration) time.Duration {
	n := parseNumber(text, int(otherwise.Milliseconds()), int(most.Milliseconds()))
	return time.Duration(n) * time.Millisecond
}

// parseNumber returns the number in a text, at most most; otherwise if it is not a number
// above 0.
func parseNumber(text string, otherwise, most int) int {
	n, err := strconv.Atoi(text)
	if err != nil || n <= 0 {
		return otherwise
	}
	return min(n, most)
}
