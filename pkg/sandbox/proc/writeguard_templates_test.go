//go:build linux

package proc_test

// The user's templates for new repositories are in the root.
const (
	userTemplate = `mkdir -p tpl/hooks tpl/info; printf '#!/bin/sh\n' > tpl/hooks/commit-msg; chmod +x tpl/hooks/commit-msg; printf '[user]\n\tname = T\n' > tpl/config; git config --global init.templateDir "$PWD/tpl"; `
	lookAtNew    = "git init -q ../new; cd ../new; git status; git commit --allow-empty -qm u; git push . HEAD:x; :"
)

// templatePlantings are plantings in the templates.
var templatePlantings = map[string]planting{
	"a template's new hook":     {userTemplate, `printf 'EVIL' > tpl/hooks/pre-commit; chmod +x tpl/hooks/pre-commit`, lookAtNew},
	"a template's hook":         {userTemplate, `printf 'EVIL' > tpl/hooks/commit-msg`, lookAtNew},
	"a template's settings":     {userTemplate, `printf 'EVIL' > x.sh; chmod +x x.sh; git config -f tpl/config core.fsmonitor "$PWD/x.sh"`, lookAtNew},
	"a template's new settings": {`mkdir tpl; git config --global init.templateDir "$PWD/tpl"`, `printf 'EVIL' > x.sh; chmod +x x.sh; git config -f tpl/config core.fsmonitor "$PWD/x.sh"`, lookAtNew},
	"a missing template":        {`git config --global init.templateDir "$PWD/tpl"`, `mkdir -p tpl/hooks; printf 'EVIL' > tpl/hooks/pre-commit; chmod +x tpl/hooks/pre-commit`, lookAtNew},
	"a template of the home":    {`mkdir -p tpl/hooks; git config --global init.templateDir "~/../root/tpl"`, `printf 'EVIL' > tpl/hooks/pre-commit; chmod +x tpl/hooks/pre-commit`, lookAtNew},
	"a template that is a link": {userTemplate, `mkdir -p t2/hooks; printf 'EVIL' > t2/hooks/pre-commit; chmod +x t2/hooks/pre-commit; mv tpl t1; ln -s t2 tpl`, lookAtNew},
	"a template that is the root": {`mkdir hooks; git config --global init.templateDir "$PWD"; git config --global core.bare false`,
		`printf 'EVIL' > hooks/pre-commit; chmod +x hooks/pre-commit`, lookAtNew},
	"settings of a template that is the root": {`git config --global init.templateDir "$PWD"`, `printf 'EVIL' > x.sh; chmod +x x.sh; git config -f config core.fsmonitor "$PWD/x.sh"`, lookAtNew},
}
