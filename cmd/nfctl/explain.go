package main

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// outputs are the records of all commands that write any.
var outputs = map[string]record{
	"fabric": fabricRecord{}, "fabric link test": linkTestRecord{}, "fabric link cut": linkRecord{},
	"reg": registerRecord{}, "reg wait": interruptRecord{}, "reg switch": switchRecord{},
	"list": listRecord{}, "info": infoRecord{}, "channels": channelsRecord{}, "programs": programsRecord{},
	"top": topRecord{}, "ping": pingRecord{}, "latency": latencyLayersRecord{}, "events": eventRecord{}, "health": healthRecord{},
	"doctor": doctorRecord{}, "selftest": selftestRecord{}, "verify": verifyRecord{}, "version": versionRecord{},
	"open": openedRecord{}, "close": openedRecord{}, "send": messageRecord{}, "receive": messageRecord{},
	"reset": changedRecord{}, "resume": changedRecord{}, "drain": drainRecord{}, "load": loadRecord{},
	"start": processRecord{}, "stop": stoppedRecord{}, "ps": psRecord{}, "groups": groupsRecord{},
	"contexts": contextsRecord{}, "contexts list": contextsRecord{}, "contexts show": contextRecord{}, "contexts use": contextRecord{},
	"program": programRecord{}, "program build": imageRecord{},
}

// key is one key of a command's JSON and YAML.
type key struct {
	Path string `json:"path" doc:"name of the key, with those it is in, as devices[].state"`
	Type string `json:"type" doc:"string, integer, number, boolean, object or list, with or null where it may be"`
	Doc  string `json:"meaning" doc:"its meaning and its unit"`
}

// explainRecord is the output of nfctl explain.
type explainRecord struct {
	Command string `json:"command" doc:"the command"`
	Keys    []key  `json:"keys" doc:"keys of its JSON and YAML, in order"`
}

func (r explainRecord) table(p *printer) {
	writeTable(p, []column[key]{
		{title: "KEY", cell: func(k key) string { return k.Path }},
		{title: "TYPE", cell: func(k key) string { return k.Type }},
		{title: "MEANING", cell: func(k key) string { return k.Doc }},
	}, r.Keys)
}

func newExplain(a *app) *cobra.Command {
	schema := false
	cmd := &cobra.Command{
		Use: "explain COMMAND", GroupID: groupLook,
		Short: "Explain the keys that a command writes as JSON and YAML",
		Long: `Explain the keys that a command writes with -o json and -o yaml: their types, meanings
and units. Without a table -o json gives the same as data, and --schema a JSON schema.
No server is asked.`,
		Example: "  nfctl explain list\n  nfctl explain --schema top > top.schema.json",
		Args:    cobra.MinimumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			name := strings.Join(args, " ")
			r, ok := outputs[name]
			if !ok {
				return usagef("no keys of %q: name one of %s", name, strings.Join(slices.Sorted(maps.Keys(outputs)), ", "))
			}
			if schema {
				return writeJSON(a.out, schemaOf(reflect.TypeOf(r), "output of nfctl "+name), "  ")
			}
			return a.print(explainRecord{Command: name, Keys: keysOf(r)})
		},
		ValidArgsFunction: cobra.FixedCompletions(slices.Sorted(maps.Keys(outputs)), cobra.ShellCompDirectiveNoFileComp),
	}
	cmd.Flags().BoolVar(&schema, "schema", false, "write a JSON schema (draft 2020-12)")
	return cmd
}

func init() { outputs["explain"] = explainRecord{} } // which reads outputs

// explained is the text of a command with its keys, for its manual page.
func explained(name, long string) string {
	r, ok := outputs[name]
	if !ok {
		return long
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n\nKeys of -o json and -o yaml:\n", long)
	for _, k := range keysOf(r) {
		fmt.Fprintf(&b, "  %s (%s)\n      %s\n", k.Path, k.Type, k.Doc)
	}
	return b.String()
}

// keysOf lists the keys of a record in the order of its fields.
func keysOf(r record) []key {
	return appendKeys(nil, "", reflect.TypeOf(r))
}

func appendKeys(keys []key, prefix string, t reflect.Type) []key {
	fields(t, func(f reflect.StructField, name string) {
		path := prefix + name
		kind, element := kindOf(f.Type)
		keys = append(keys, key{path, kind, f.Tag.Get("doc")})
		if element == nil {
			return
		}
		if strings.HasPrefix(kind, "list") {
			path += "[]"
		}
		keys = appendKeys(keys, path+".", element)
	})
	return keys
}

// kindOf names a type; element is what has keys of its own in it.
func kindOf(t reflect.Type) (kind string, element reflect.Type) {
	switch t.Kind() {
	case reflect.Pointer:
		kind, element = kindOf(t.Elem())
		return kind + " or null", element
	case reflect.Slice:
		_, element = kindOf(t.Elem())
		if element == nil {
			inner, _ := kindOf(t.Elem())
			return "list of " + inner, nil
		}
		return "list", element
	case reflect.Struct:
		return "object", t
	case reflect.Bool:
		return "boolean", nil
	case reflect.String:
		return "string", nil
	case reflect.Float64:
		return "number", nil
	case reflect.Int, reflect.Int32, reflect.Int64, reflect.Uint32, reflect.Uint64:
		return "integer", nil
	}
	panic(fmt.Sprintf("no kind for %v", t))
}

// fields calls do for each field of a record that has a key.
func fields(t reflect.Type, do func(f reflect.StructField, name string)) {
	for i := range t.NumField() {
		f := t.Field(i)
		switch name := f.Tag.Get("json"); {
		case f.Anonymous:
			fields(f.Type, do)
		case f.IsExported():
			do(f, name)
		}
	}
}

// schemaOf is the JSON schema of a record, or of a part of one.
func schemaOf(t reflect.Type, doc string) map[string]any {
	kind, _ := kindOf(t)
	kind, null := strings.CutSuffix(kind, " or null")
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	s := map[string]any{"description": doc}
	switch t.Kind() {
	case reflect.Slice:
		kind, s["items"] = "array", schemaOf(t.Elem(), "an element")
	case reflect.Struct:
		properties, required := make(map[string]any), []string{}
		fields(t, func(f reflect.StructField, name string) {
			properties[name] = schemaOf(f.Type, f.Tag.Get("doc"))
			required = append(required, name)
		})
		kind, s["properties"], s["required"] = "object", properties, required
	}
	if s["type"] = any(kind); null {
		s["type"] = []string{kind, "null"}
	}
	return s
}
