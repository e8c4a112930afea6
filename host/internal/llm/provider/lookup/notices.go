package lookup

import (
	"context"
	"fmt"
)

// NoModel is the message if no model is configured and none was found.
const NoModel = "no model is configured, no key is set in the environment (OPENAI_API_KEY, ANTHROPIC_API_KEY, GEMINI_API_KEY), and no local model answers; set one of these"

// DefaultNotice explains which model is the default and how to choose another. It
// returns "" if the configuration chooses the default.
func (r *Finder) DefaultNotice(ctx context.Context) string {
	o, err := r.defaultEntry(ctx)
	switch {
	case err != nil || o.provider.Why == "":
		return ""
	case o.provider.Kind == Command:
		return r.WhyNoModel(ctx) + ". Until then, input lines are tool calls, like grep pattern=TODO path=src. See docs/models.md"
	}
	return fmt.Sprintf("the model is %s of %s: %s", o.model.Name, o.provider.Name, o.provider.Why)
}

// WhyNoModel returns the reason why no model was found: NoModel, or the error of the
// first provider that is configured or has a key in the environment.
func (r *Finder) WhyNoModel(ctx context.Context) string {
	for _, p := range r.configured() {
		if p.Kind == Command {
			continue
		}
		if models, err := r.models(ctx, p); len(models) == 0 && err != nil {
			return unlistedError(p, err).Error()
		}
	}
	return NoModel
}
