package backend

import (
	"net/url"
	"regexp"
	"strconv"

	"github.com/toolroom-mcp/toolroom/host/store/jetstream"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// parameter fills in what the URL says after its question mark.
func parameter(j *jetstream.Config, values url.Values) error {
	for key := range values {
		value := values.Get(key)
		switch key {
		case "name":
			// It begins the names of streams and subjects.
			if ok, _ := regexp.MatchString(`^[a-zA-Z0-9_-]{1,64}$`, value); !ok {
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
