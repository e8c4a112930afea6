package backend

import (
	"net/url"
	"strconv"

	"github.com/toolroom-mcp/toolroom/host/internal/store/jetstream"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// isName reports whether value is 1 to 64 letters, digits, underscores and
// dashes of ASCII.
func isName(value string) bool {
	for _, c := range []byte(value) {
		if c != '_' && c != '-' && (c < '0' || c > '9') && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') {
			return false
		}
	}
	return 1 <= len(value) && len(value) <= 64
}

// setParameters sets the fields that the query parameters of the URL name. It returns
// INVALID_INPUT for unknown parameters and wrong values.
func setParameters(j *jetstream.Config, values url.Values) error {
	for key := range values {
		value := values.Get(key)
		switch key {
		case "name":
			// The value is a prefix of the names of streams and subjects.
			if !isName(value) {
				return toolerr.New(toolerr.InvalidInput, "store: the name %.80q is not 1 to 64 of [a-zA-Z0-9_-]", value)
			}
			j.Name = value
		case "replicas":
			n, err := strconv.Atoi(value)
			if err != nil || n < 1 || n > 5 {
				return toolerr.New(toolerr.InvalidInput, "store: replicas is %.20q, not 1 to 5", value)
			}
			j.Replicas = n
		case "credentials":
			j.Credentials = value
		default:
			return toolerr.New(toolerr.InvalidInput, "store: the url has the parameter %.40q; known are name, replicas, credentials", key)
		}
	}
	return nil
}
