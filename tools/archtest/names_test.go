package archtest

import (
	"go/ast"
	"go/token"
	"path"
	"slices"
	"strings"
	"testing"
)

// TestPermissions wants every permission of a layer to be used.
func TestPermissions(t *testing.T) {
	used := map[string]bool{} // layer and permission
	for _, f := range load(t).files {
		l, _ := layerOf(f.dir)
		for _, imp := range f.imports {
			inside, ours := strings.CutPrefix(imp, module)
			for _, p := range l.may {
				if ours && !isForTests(inside) && within(inside, p) {
					used[l.dir+" "+p] = true
				}
			}
		}
	}
	for _, l := range layers {
		for _, p := range l.may {
			if !used[l.dir+" "+p] {
				t.Errorf("nothing in %s imports %s: take the permission out of layers", l.dir, p)
			}
		}
	}
}

// importNames gives the packages of this module that a file imports, by the names that it has for them.
func importNames(f *goFile) map[string]string {
	names := map[string]string{}
	for i, spec := range f.ast.Imports {
		inside, ours := strings.CutPrefix(f.imports[i], module)
		if !ours {
			continue
		}
		name := path.Base(inside)
		if spec.Name != nil {
			name = spec.Name.Name
		}
		names[name] = inside
	}
	return names
}

// foreign is the package and the name that a selector means, if that is of another package of this module.
func foreign(names map[string]string, s *ast.SelectorExpr) (dir, name string, is bool) {
	x, isName := s.X.(*ast.Ident)
	if !isName || x.Obj != nil { // a variable hides the package
		return "", "", false
	}
	dir, is = names[x.Name]
	return dir, s.Sel.Name, is
}

// hooks are variables that tests of other packages set.
var hooks = []string{"internal/run/output.AsideStep"}

// TestSetters finds assignments to variables of other packages: what a package does must not depend on who is linked.
func TestSetters(t *testing.T) {
	r := load(t)
	for i := range r.files {
		names := importNames(&r.files[i])
		ast.Inspect(r.files[i].ast, func(n ast.Node) bool {
			set, is := n.(*ast.AssignStmt)
			if !is || set.Tok == token.DEFINE {
				return true
			}
			for _, left := range set.Lhs {
				s, is := left.(*ast.SelectorExpr)
				if !is {
					continue
				}
				dir, name, is := foreign(names, s)
				if is && !slices.Contains(hooks, dir+"."+name) {
					t.Errorf("%s sets %s of %s: pass a value", r.fset.Position(n.Pos()), name, dir)
				}
			}
			return true
		})
	}
}

// shared are packages whose exports are not looked at.
var shared = []string{".", "pipeline/...", "internal/run/...", "internal/child", "farm/task", "farmd/..."}

// TestExports finds exported names at the top of packages that no other package uses: neither by name nor, of types, by
// a value that it gets. Constants are used together.
func TestExports(t *testing.T) {
	r := load(t)
	used := map[string]bool{} // package and name
	for i := range r.files {
		f := &r.files[i]
		names := importNames(f)
		ast.Inspect(f.ast, func(n ast.Node) bool {
			if s, is := n.(*ast.SelectorExpr); is {
				if dir, name, is := foreign(names, s); is {
					used[dir+" "+name] = true
				}
			}
			return true
		})
		if !f.isTest {
			for name := range mentioned(f.ast) {
				used[f.dir+" "+name] = true
			}
		}
	}
	for i := range r.files {
		f := &r.files[i]
		if f.isTest || f.isMade || f.ast.Name.Name == "main" || isForTests(f.dir) || isBelow(f.dir, shared) {
			continue
		}
		for _, names := range exported(f.ast) {
			if !slices.ContainsFunc(names, func(n *ast.Ident) bool { return used[f.dir+" "+n.Name] }) {
				t.Errorf("%s: %s is exported, and no other package uses it", r.fset.Position(names[0].Pos()),
					names[0].Name)
			}
		}
	}
}

// mentioned has the names in the signatures of exported functions and in exported fields.
func mentioned(f *ast.File) map[string]bool {
	names := map[string]bool{}
	add := func(n ast.Node) {
		ast.Inspect(n, func(n ast.Node) bool {
			if id, is := n.(*ast.Ident); is {
				names[id.Name] = true
			}
			return true
		})
	}
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncDecl:
			if n.Name.IsExported() {
				add(n.Type)
			}
			return false
		case *ast.Field:
			if len(n.Names) == 0 || n.Names[0].IsExported() {
				add(n.Type)
			}
		}
		return true
	})
	return names
}

// exported lists the exported names at the top of a file, without methods: constants of one declaration together.
func exported(f *ast.File) (list [][]*ast.Ident) {
	add := func(names ...*ast.Ident) {
		names = slices.DeleteFunc(names, func(n *ast.Ident) bool { return !n.IsExported() })
		if len(names) > 0 {
			list = append(list, names)
		}
	}
	for _, decl := range f.Decls {
		switch d := decl.(type) {
		case *ast.FuncDecl:
			if d.Recv == nil {
				add(d.Name)
			}
		case *ast.GenDecl:
			var constants []*ast.Ident
			for _, spec := range d.Specs {
				switch s := spec.(type) {
				case *ast.TypeSpec:
					add(s.Name)
				case *ast.ValueSpec:
					constants = append(constants, s.Names...)
					if d.Tok == token.VAR {
						add(slices.Clone(s.Names)...)
						constants = nil
					}
				}
			}
			add(constants...)
		}
	}
	return list
}
