// Package tokens counts what texts cost a model.
package tokens

import "encoding/json"

// EstimateJSON is how many tokens a JSON value has, about.
func EstimateJSON(raw json.RawMessage) int { return (len(raw) + 3) / 4 }
