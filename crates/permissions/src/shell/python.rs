//! Code for `python`: whether it only reads, writes and prints; and modules that it runs from the command line.

use super::ast::Word;
use super::code::words;
use super::programs::has;
use super::programs::{self, Class};
use super::steps::{Input, Language, Steps};

/// Modules of Python that run no program with names that are not listed in [`RUNS`].
const MODULES: &str = " argparse base64 collections configparser copy csv dataclasses datetime decimal difflib enum fractions \
    functools glob hashlib html io itertools json math operator os pathlib platform pprint random re shutil socket statistics \
    string struct sys sysconfig tarfile tempfile textwrap time toml tomllib tomli traceback typing unicodedata urllib uuid \
    xml yaml zipfile zlib numpy pandas requests torch site path request parse http client ";
/// Names with which Python runs programs, or text as code.
const RUNS: &str = " breakpoint breakpointhook builtins call check_call check_output code codecs compile ctypes eval exec execfile \
    fork forkpty getattr getoutput getstatusoutput globals help importlib input load_module loads_ locals modules \
    multiprocessing os_system pipes platform_popen Popen popen posix pty run runpy setattr spawn startfile subprocess system \
    vars exec_module asyncio unsafe_load full_load unpickle pickle marshal shelve timeit cProfile pdb sh fabric pexpect \
    attrgetter methodcaller get_field get_type_hints ForwardRef UnsafeLoader CLoader CUnsafeLoader FullLoader _get_command_stdout \
    _getframe f_back f_builtins f_globals f_locals gi_frame cr_frame ag_frame tb_frame func_globals _popen runstring ctypeslib \
    allow_pickle read_pickle weights_only ";
/// A module of Python, and a function of it that runs code in data.
const PAIRS: [(&str, &str); 2] = [("torch", "load"), ("pandas", "query")];
/// Modules that Python runs from the command line with code or programs in their arguments.
const MAINS: [&str; 9] = [
    "timeit", "pdb", "cProfile", "profile", "trace", "runpy", "code", "doctest", "pty",
];

/// Returns true for `-m` and `-Im`: options of Python behind which a module stands, or in which it stands.
pub(super) fn runs_module(option: &str) -> bool {
    let letters = option.strip_prefix('-').unwrap_or_default();
    letters
        .find(['c', 'm', 'W', 'X', '-'])
        .is_some_and(|at| letters.get(at..).is_some_and(|rest| rest.starts_with('m')))
}

/// The module behind `-m`, or in the same word, and its arguments.
pub(super) fn module<'w>(steps: &mut Steps<'w>, option: &str, behind: &'w [Word], input: &'w Input) {
    let glued = option.split_once('m').map_or("", |(_, module)| module);
    let next = behind.first().map(Word::text).unwrap_or_default();
    let module = if glued.is_empty() { next.as_str() } else { glued };
    let has_options = matches!(programs::class(module), Class::Options(_));
    if MAINS.contains(&module) || has_options && !glued.is_empty() {
        steps.hide();
    } else if has_options {
        // `pip` and others are programs, too.
        steps.program(behind, input);
    }
}

/// A line may make the files that Python imports: known modules, and modules that it imports by itself.
pub(super) fn imports(steps: &mut Steps<'_>, arguments: &[Word], input: &Input) {
    let mut texts: Vec<String> = arguments.iter().map(Word::text).collect();
    if let Input::Text(text) = input {
        texts.push(text.text());
    }
    let modules = texts
        .iter()
        .flat_map(|text| words(text).filter(|word| has(MODULES, word)));
    for module in modules.chain(["sitecustomize", "usercustomize"]) {
        steps.runs(&format!("{module}.py"), Language::Python);
    }
}

/// Returns true if a line imports known modules only. A word behind `as` is another name for one.
fn imports_known(line: &str) -> bool {
    let from = line.starts_with("from ");
    let (mut before, mut count, mut is_behind) = ("", 0, false);
    for word in words(line) {
        if ["import", "from", "as"].contains(&word) {
            is_behind |= word != "as";
        } else {
            let is_meant = (!from || count == 0) && before != "as" && (is_behind || word.len() > 2);
            if is_meant && !has(MODULES, word) {
                return false;
            }
            count += 1;
        }
        before = word;
    }
    true
}

/// Python that imports known modules, and names nothing that runs programs or text.
pub(super) fn is_quiet(code: &str) -> bool {
    let has_word = |wanted: &str| words(code).any(|word| word == wanted);
    let mut is_known = code.is_ascii() || !words(code).any(|word| !word.is_ascii());
    is_known &= !PAIRS
        .iter()
        .any(|(module, name)| has_word(module) && has_word(name));
    // `Loader=yaml.SafeLoader` is harmless, the loader of this name is not.
    let ends_value = |(at, name): (usize, &str)| {
        let is_whole = code
            .get(..at)
            .is_some_and(|before| !before.ends_with(char::is_alphanumeric));
        let behind = code.get(at + name.len()..).unwrap_or_default().trim_start();
        is_whole && !behind.starts_with('=')
    };
    is_known &= !code.match_indices("Loader").any(ends_value);
    for line in code.split(['\n', ';']) {
        let line = line.trim();
        if line.starts_with("import ") || line.starts_with("from ") || line.contains(" import ") {
            is_known &= imports_known(line);
        }
        if line.ends_with('\\') || line.contains("*") && line.contains("import") {
            is_known = false;
        }
    }
    is_known
        && !words(code).any(|word| {
            let runs = has(RUNS, word)
                || word.starts_with("exec")
                || word.starts_with("spawn")
                || word.starts_with("posix");
            runs || word.starts_with("__")
                && word != "__name__"
                && word != "__version__"
                && word != "__file__"
                || word.starts_with("_os")
                || word == "_sys"
        })
}
