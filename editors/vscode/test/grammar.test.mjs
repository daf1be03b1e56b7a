// The grammar on real dumps: each kind of line has its colours, and no line takes long.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

const require = createRequire(import.meta.url);
const oniguruma = require("vscode-oniguruma");
const { INITIAL, Registry, parseRawGrammar } = require("vscode-textmate");

const here = new URL("..", import.meta.url);
const samples = new URL("../../samples/", here);
const wasm = readFileSync(require.resolve("vscode-oniguruma/release/onig.wasm"));
await oniguruma.loadWASM(wasm);
const path = fileURLToPath(new URL("syntaxes/mindspore-ir.tmLanguage.json", here));
const registry = new Registry({
  onigLib: Promise.resolve({
    createOnigScanner: (patterns) => new oniguruma.OnigScanner(patterns),
    createOnigString: (text) => new oniguruma.OnigString(text),
  }),
  loadGrammar: async () => parseRawGrammar(readFileSync(path, "utf8"), path),
});
const grammar = await registry.loadGrammar("source.mindspore-ir");

// The innermost scope, without its last part, of a part of a line.
function scopeOf(line, part) {
  const { tokens } = grammar.tokenizeLine(line, INITIAL);
  const start = line.indexOf(part);
  assert.ok(start >= 0, `${part} is in ${line}`);
  const token = tokens.find(({ startIndex, endIndex }) => startIndex <= start && start < endIndex);
  return token.scopes.at(-1).replace(/\.mindspore-ir$/, "");
}

const STATEMENT =
  '  %8(CNode_23) = PrimFunc_MatMul(%6, %para3_w, Bool(0), $(@1_main:para5_b), "%9") ' +
  "{instance name: matmul} primitive_attrs: {in_strategy: ((2, 4), (1, 2))}";

for (const [line, part, scope] of [
  ["# IR entry: @1_main", "1_main", "entity.name.function"],
  ["subgraph @13_loss parent: [subgraph @1_main](%para7_x) {", "@13", "entity.name.function"],
  ["subgraph @13_loss parent: [subgraph @1_main](%para7_x) {", "@1_", "entity.name.function"],
  ["subgraph @13_loss parent: [subgraph @1_main](%para7_x) {", "%para7", "variable.parameter"],
  ["%para3_w: <Ref[Tensor[Float32]], (8, 4)>  :  has_default", "%para3", "variable.parameter"],
  ["%para3_w: <Ref[Tensor[Float32]], (8, 4)>  :  has_default", "Ref", "storage.type"],
  ["%para3_w: <Ref[Tensor[Float32]], (8, 4)>  :  has_default", "has_d", "storage.modifier"],
  [STATEMENT, "%8", "variable.other.definition.node"],
  [STATEMENT, "PrimFunc", "support.function.operator"],
  [STATEMENT, "%6", "variable.other.node"],
  [STATEMENT, "%para3", "variable.parameter"],
  [STATEMENT, "$(@1", "variable.other.free"],
  [STATEMENT, "%9", "string.quoted.double"],
  [STATEMENT, "instance", "keyword.other.block"],
  [STATEMENT, "primitive_attrs", "keyword.other.block"],
  [STATEMENT, "in_strategy", "keyword.other.strategy"],
  [STATEMENT, "4), (1", "constant.numeric"],
  ["  %0(CNode_1) = call @13_loss(%para1_x, UMonad[U])", "call", "keyword.control.call"],
  ["  %0(CNode_1) = call @13_loss(%para1_x, UMonad[U])", "@13", "entity.name.function"],
  ["      : (<Tensor[Float32], (64, 512)>) -> (<Tensor[Float32], (8)>)", "->", "keyword.operator.arrow"],
  ["      : (<Tensor[Float32], (64, 512)>) -> (<Tensor[Float32], (8)>)", "Float32", "storage.type.number"],
  ["      # Scope: (Default/net-Net)", "Default", "entity.name.namespace"],
  ["      # In file net.py:33, 29~56/        return x/", "net.py", "string.unquoted.path"],
  ["      # In file net.py:33, 29~56/        return x/", ":33", "constant.numeric.line"],
  ["      # SideEffect: { load }", "SideEffect", "comment.line.number-sign"],
  ["  Return(%8)", "Return", "keyword.control.return"],
  ["has_shard: 0", "has_shard", "entity.other.attribute-name"],
]) {
  test(`${part} in "${line.trim().slice(0, 60)}" is ${scope}`, () => {
    assert.equal(scopeOf(line, part), scope);
  });
}

for (const name of [
  "mlp_rejected/step_parallel_begin_0018.ir",
  "gpt/20_validate_0080.ir",
  "control_flow/01_type_inference_0001.ir",
  "fragment_1.6.ir",
]) {
  test(`every statement of ${name} is coloured as one, and none leaks into the next line`, () => {
    let stack = INITIAL;
    for (const line of readFileSync(new URL(name, samples), "utf8").split("\n")) {
      const { tokens, ruleStack, stoppedEarly } = grammar.tokenizeLine(line, stack, 500);
      assert.equal(stoppedEarly, false, line);
      if (/^ {2}%\d+\(.*?\) = /.test(line)) {
        const scopes = tokens.flatMap((token) => token.scopes);
        assert.ok(scopes.includes("variable.other.definition.node.mindspore-ir"), line);
      }
      stack = ruleStack;
      assert.equal(stack.depth, 1, line);
    }
  });
}

test("a hostile line is done within a second", () => {
  for (const line of [`  %1(${"(".repeat(20000)}`, `$(@${"a:".repeat(20000)}`, `"${"\\".repeat(20001)}`]) {
    const start = performance.now();
    grammar.tokenizeLine(line, INITIAL, 1000);
    assert.ok(performance.now() - start < 1500);
  }
});
