//! A supervisor by itself, for programs that cannot call `supervise_if_asked` first: tests, plugins, hosts of other
//! languages. They name it with `set_supervisor`.

fn main() {
    backstitch_runtime::supervise_if_asked();
}
