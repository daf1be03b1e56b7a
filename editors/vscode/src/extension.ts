// Starts irtool's language server and shows its answers in VS Code's own ways.

import * as vscode from "vscode";
import {
  type ExecuteCommandSignature,
  LanguageClient,
  type LanguageClientOptions,
  type Location,
  type ServerOptions,
  type SymbolInformation,
} from "vscode-languageclient/node";

const LANGUAGE = "mindspore-ir";
let client: LanguageClient | undefined;

export async function activate(context: vscode.ExtensionContext): Promise<void> {
  context.subscriptions.push(
    vscode.commands.registerCommand("irtool.searchDump", searchDump),
    vscode.commands.registerCommand("irtool.restart", restart),
    vscode.workspace.onDidChangeConfiguration((change) => {
      if (change.affectsConfiguration("irtool")) {
        void restart();
      }
    }),
  );
  await start();
}

export async function deactivate(): Promise<void> {
  await client?.dispose();
}

async function restart(): Promise<void> {
  await client?.dispose();
  await start();
}

async function start(): Promise<void> {
  const settings = vscode.workspace.getConfiguration("irtool");
  const [command, ...args] = settings.get<string[]>("command", ["irtool", "lsp"]);
  if (command === undefined) {
    return;
  }
  const server: ServerOptions = { command, args };
  const options: LanguageClientOptions = {
    documentSelector: [{ language: LANGUAGE, scheme: "file" }],
    initializationOptions: { context: settings.get("context", {}), shows: true },
    middleware: { executeCommand },
  };
  client = new LanguageClient("irtool", "irtool", server, options);
  try {
    await client.start();
  } catch {
    const what = `irtool's language server did not start (${[command, ...args].join(" ")}).`;
    const how = "Install it with: python -m pip install 'irtool[lsp]', or set irtool.command.";
    void vscode.window.showErrorMessage(`${what} ${how}`);
  }
}

// The server answers what code lenses ask; here the answers are shown.
async function executeCommand(
  command: string,
  args: unknown[],
  next: ExecuteCommandSignature,
): Promise<unknown> {
  const answer: unknown = await next(command, args);
  if (client === undefined) {
    return answer;
  }
  const { protocol2CodeConverter: converter } = client;
  const [uri, line] = args as [string, number];
  if (command === "irtool.places" && Array.isArray(answer)) {
    const places = (answer as Location[]).map((location) => converter.asLocation(location));
    const here = new vscode.Position(line, 0);
    const open = "editor.action.showReferences";
    await vscode.commands.executeCommand(open, vscode.Uri.parse(uri), here, places);
  } else if (command === "irtool.why" && typeof answer === "string" && answer !== "") {
    const [title = "", ...lines] = answer.split("\n");
    await vscode.window.showInformationMessage(title, { modal: true, detail: lines.join("\n") });
  }
  return answer;
}

interface SearchAnswer {
  found: SymbolInformation[];
  why_no_query: string;
  note: string;
}

// A box that searches as one types, and moves to the chosen statement.
async function searchDump(): Promise<void> {
  const editor = vscode.window.activeTextEditor;
  if (client === undefined || editor?.document.languageId !== LANGUAGE) {
    return;
  }
  const uri = editor.document.uri.toString();
  const box = vscode.window.createQuickPick<vscode.QuickPickItem & { line: number }>();
  box.placeholder = 'op == "MatMul" and shape[0] >= 1024, or a part of a name';
  box.matchOnDescription = true;
  let asked = 0;
  const ask = async (query: string): Promise<void> => {
    const own = ++asked;
    box.busy = true;
    const answer = await client?.sendRequest<SearchAnswer>("workspace/executeCommand", {
      command: "irtool.search",
      arguments: [uri, query],
    });
    if (own !== asked || answer === undefined) {
      return;
    }
    box.busy = false;
    const why = answer.found.length > 0 || query === "" ? "" : answer.why_no_query || answer.note;
    box.title = `${answer.found.length} found${why && `: ${why}`}`;
    box.items = answer.found.map(({ name, containerName, location }) => ({
      label: name,
      description: `line ${location.range.start.line + 1}`,
      detail: containerName,
      alwaysShow: true,
      line: location.range.start.line,
    }));
  };
  let timer: NodeJS.Timeout | undefined;
  box.onDidChangeValue((query) => {
    clearTimeout(timer);
    timer = setTimeout(() => void ask(query), 150);
  });
  const show = (line: number | undefined): void => {
    if (line !== undefined) {
      const place = new vscode.Position(line, 0);
      editor.selection = new vscode.Selection(place, place);
      editor.revealRange(new vscode.Range(place, place), vscode.TextEditorRevealType.InCenter);
    }
  };
  box.onDidChangeActive(([item]) => show(item?.line));
  box.onDidAccept(() => {
    show(box.selectedItems[0]?.line);
    box.hide();
  });
  box.onDidHide(() => box.dispose());
  box.show();
}
