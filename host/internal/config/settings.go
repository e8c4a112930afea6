package config

import (
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/toolroom-mcp/toolroom/host/internal/accesstoken"
	"github.com/toolroom-mcp/toolroom/host/internal/catalog"
	"github.com/toolroom-mcp/toolroom/host/internal/config/dialect"
	"github.com/toolroom-mcp/toolroom/host/internal/config/secret"
	"github.com/toolroom-mcp/toolroom/host/internal/llm/provider/lookup"
	"github.com/toolroom-mcp/toolroom/host/internal/pipeline/approve"
	"github.com/toolroom-mcp/toolroom/host/internal/store/backend"
	"github.com/toolroom-mcp/toolroom/host/internal/upstream/oauth"
)

// setting is a setting with the variables of its file.
type setting struct {
	dialect.Setting
	vars dialect.Variables
}

// mergeSettings returns settings in which those of a later document replace earlier ones, with a notice.
// Each setting is replaced as a whole: if two files have a policy, the later one counts.
func (c *Config) mergeSettings(before []setting, d *dialect.Document, vars dialect.Variables) []setting {
	for _, s := range d.Settings {
		i := slices.IndexFunc(before, func(have setting) bool { return have.Key == s.Key })
		if i >= 0 {
			c.notice("%v", s.Problem("is read from here, not from "+before[i].File))
			before = slices.Delete(before, i, i+1)
		}
		before = append(before, setting{s, vars})
	}
	return before
}

// withoutConsequences returns the problems of whole settings in more, except for those
// of settings in which reading already found a problem: a value that could not be read
// is missing, and would be reported a second time as missing.
func withoutConsequences(read, more dialect.Problems) dialect.Problems {
	return slices.DeleteFunc(more, func(p dialect.Problem) bool {
		return p.Field != "" && slices.ContainsFunc(read, func(r dialect.Problem) bool {
			return r.File == p.File && strings.HasPrefix(r.Field, p.Field+".")
		})
	})
}

// applySettings sets the fields of c from the settings, with variables replaced, and checks them.
func (c *Config) applySettings(all []setting) (problems dialect.Problems) {
	var plain []dialect.Setting
	at := map[string]setting{}
	for _, s := range all {
		plain = append(plain, s.Setting)
		at[s.Key] = s
	}
	applied := dialect.Apply(plain)
	c.Settings, c.Profiles, c.Pins, c.Stages, c.Offer = plain, applied.Profiles, applied.Pins, applied.Stages, applied.Offer
	c.Agents, c.Share = applied.Agents, applied.ShareServers
	c.TokenStore = oauthStorageKind(applied.TokenStore)
	problems = append(problems, c.readDeclared(applied, at)...)
	if s, ok := at["approval"]; ok {
		if err := c.expandApproval(s.vars); err != nil {
			problems = append(problems, s.Problem(err.Error()))
		}
	}
	if s, ok := at["auth"]; ok {
		if err := c.expandAuth(applied.Auth, s.vars); err != nil {
			problems = append(problems, s.Problem(err.Error()))
		}
	}
	if s, ok := at["models"]; ok {
		if err := c.expandModels(applied.Models, s.vars, s.File); err != nil {
			problems = append(problems, s.Problem(err.Error()))
		}
	}
	if err := errors.Join(c.Stages.Validate(), c.Offer.Validate()); err != nil {
		for text := range strings.SplitSeq(err.Error(), "\n") {
			key, rest, _ := strings.Cut(text, ": ")
			if s, ok := at[key]; ok {
				problems = append(problems, s.Problem(rest))
				continue
			}
			problems = append(problems, dialect.Problem{File: c.File, Text: text})
		}
	}
	c.Store = backend.Config{Dir: c.State}
	if s, ok := at["store"]; ok {
		if err := c.applyStore(applied.Store, s.vars); err != nil {
			problems = append(problems, s.Problem(strings.TrimPrefix(err.Error(), "store: ")))
		}
	}
	if s, ok := at["token_store"]; ok && c.TokenStore == oauth.InCluster && !c.Store.IsCluster() {
		problems = append(problems, s.Problem("cluster needs store: nats://HOST:4222, which the hosts of the cluster share"))
	}
	return problems
}

// expandAuth replaces the variables in the settings for the sign-in of users, checks them,
// and sets c.Auth. It returns an error for a missing variable, an unknown profile or an
// invalid setting.
func (c *Config) expandAuth(a *accesstoken.Config, vars dialect.Variables) (err error) {
	secretText := a.ClientSecret.Reveal()
	for _, text := range []*string{&a.Issuer, &a.URL, &a.ClientID, &secretText} {
		if *text, err = vars.Expand(*text); err != nil {
			return err
		}
	}
	a.ClientSecret = secret.Text(secretText)
	for i := range a.Audiences {
		if a.Audiences[i], err = vars.Expand(a.Audiences[i]); err != nil {
			return err
		}
	}
	for _, grant := range a.Profiles {
		if grant.Profile != accesstoken.AllTools && !slices.ContainsFunc(c.Profiles, func(p catalog.Profile) bool { return p.Name == grant.Profile }) {
			return fmt.Errorf("profiles.%s: there is no profile %q in profiles; use one of these, or \"*\" for all tools", grant.To, grant.Profile)
		}
	}
	c.Auth = a
	return a.Validate()
}

// expandApproval replaces the variables in the settings for approvals. It returns an error for an
// unknown variable.
func (c *Config) expandApproval(vars dialect.Variables) (err error) {
	a := &c.Stages.Approval
	secret := string(a.Callback.Secret)
	for _, text := range []*string{&a.Callback.URL, &secret, &a.PublicURL} {
		out, fault := vars.Expand(*text)
		if fault != nil {
			return fault
		}
		*text = out
	}
	a.Callback.Secret, a.PublicURL = approve.Secret(secret), strings.TrimSuffix(a.PublicURL, "/")
	return nil
}

// expandModels replaces the variables in the settings for models, and reads keys from their
// variables. It returns an error for a missing variable or an invalid setting. A missing
// key is reported when its model is used.
func (c *Config) expandModels(m lookup.Config, vars dialect.Variables, file string) error {
	for i := range m.Providers {
		p := &m.Providers[i]
		at := "providers." + dialect.ShownName(p.Name) + "."
		headers := map[string]secret.Text{}
		for _, name := range slices.Sorted(maps.Keys(p.Headers)) {
			value, err := vars.Expand(p.Headers[name].Reveal())
			if err != nil {
				return fmt.Errorf("%sheaders: %s: %w", at, dialect.ShownName(name), err)
			}
			headers[name] = secret.Text(value)
		}
		p.Headers = headers
		for _, text := range []*string{&p.BaseURL, &p.Project, &p.Region, &p.File} {
			out, err := vars.Expand(*text)
			if err != nil {
				return fmt.Errorf("%s%w", at, err)
			}
			*text = out
		}
		p.BaseURL = strings.TrimRight(p.BaseURL, "/")
		if p.KeyEnv == "" && p.BaseURL == "" && p.Project == "" {
			p.KeyEnv = p.Kind.KeyEnv()
		}
		if value, ok := vars.Env(p.KeyEnv); ok {
			p.Key = secret.Text(strings.TrimSpace(value))
		}
		if p.File != "" && !filepath.IsAbs(p.File) {
			p.File = filepath.Join(filepath.Dir(file), p.File)
		}
		if len(p.TokenCommand) > 0 {
			command, err := findProgram(p.TokenCommand[0], []string{filepath.Dir(file)}, "")
			if err != nil {
				return fmt.Errorf("%stoken_command: %q: %w", at, p.TokenCommand[0], err)
			}
			p.TokenCommand = append([]string{command}, p.TokenCommand[1:]...)
			if _, err := c.fileTrust.commandFiles(file, p.TokenCommand, ""); err != nil {
				return fmt.Errorf("%stoken_command: %w", at, err)
			}
		}
	}
	c.Models.Default, c.Models.Providers = m.Default, m.Providers
	err := c.Models.Validate()
	if err != nil {
		return errors.New(strings.TrimPrefix(err.Error(), "models: "))
	}
	return nil
}

// applyStore sets c.Store to the store that a file names, and checks it. A relative
// directory is in that of the file. It returns an error for a missing variable or an
// invalid setting.
func (c *Config) applyStore(s dialect.Store, vars dialect.Variables) (err error) {
	fill := func(text string) string {
		out, fault := vars.Expand(text)
		if err == nil {
			err = fault
		}
		return out
	}
	c.Store.URL, c.Store.Token, c.Store.MaxBytes = fill(s.URL), secret.Text(fill(s.Token.Reveal())), s.MaxBytes
	if dir := fill(s.Dir); dir != "" {
		if !filepath.IsAbs(dir) {
			dir = filepath.Join(filepath.Dir(s.File), dir)
		}
		c.Store.Dir = dir
	}
	if err != nil || c.Store.URL == "" && c.Store.Dir == "" { // the parts that need a store return an error
		return err
	}
	return c.Store.Validate()
}
