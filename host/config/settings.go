package config

import (
	"errors"
	"path/filepath"
	"slices"
	"strings"

	"github.com/toolroom-mcp/toolroom/host/config/dialect"
	"github.com/toolroom-mcp/toolroom/host/config/secret"
	"github.com/toolroom-mcp/toolroom/host/pipeline/approve"
	"github.com/toolroom-mcp/toolroom/host/store/backend"
)

// setting is a setting with what variables stand for in its file.
type setting struct {
	dialect.Setting
	vars dialect.Variables
}

// overlay puts the settings of a document over those of the ones before. Each
// is taken whole: of two files that have a policy, the later's counts.
func (c *Config) overlay(before []setting, d *dialect.Document, vars dialect.Variables) []setting {
	for _, s := range d.Settings {
		i := slices.IndexFunc(before, func(have setting) bool { return have.Key == s.Key })
		if i >= 0 {
			c.notice("%v", s.Problem("is taken from here, and not from "+before[i].File))
			before = slices.Delete(before, i, i+1)
		}
		before = append(before, setting{s, vars})
	}
	return before
}

// set takes the settings in.
func (c *Config) set(all []setting) (problems dialect.Problems) {
	var plain []dialect.Setting
	at := map[string]setting{}
	for _, s := range all {
		plain = append(plain, s.Setting)
		at[s.Key] = s
	}
	applied := dialect.Apply(plain)
	c.Settings, c.Profiles, c.Pins, c.Stages, c.Offer = plain, applied.Profiles, applied.Pins, applied.Stages, applied.Offer
	c.Agents = applied.Agents
	problems = append(problems, c.declare(applied, at)...)
	if s, ok := at["approval"]; ok {
		if err := c.fillApproval(s.vars); err != nil {
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
		if err := c.place(applied.Store, s.vars); err != nil {
			problems = append(problems, s.Problem(strings.TrimPrefix(err.Error(), "store: ")))
		}
	}
	return problems
}

// fillApproval replaces the variables in what is said of approvals.
func (c *Config) fillApproval(vars dialect.Variables) (err error) {
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

// place finds the store that a file names.
func (c *Config) place(s dialect.Store, vars dialect.Variables) (err error) {
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
	if err != nil || c.Store.URL == "" && c.Store.Dir == "" { // nowhere is for whoever needs it to say
		return err
	}
	return c.Store.Validate()
}
