//! Pages, and the Markdown that they become.

use super::*;

fn markdown(html: &str) -> String {
    convert(html, &"https://example.com/docs/page".parse().unwrap()).text
}

#[test]
fn the_parts_of_a_page_keep_their_form() {
    let html = "<!doctype html><html><head><title> How to\n sew &amp; mend </title><style>p { color: red }</style>\
         <script>if (1 < 2) document.write('<p>no</p>')</script></head><body><h1>Seams</h1>\
         <p>A   <b>strong</b> and <em>fine</em> seam, see <a href=\"../hem?x=1\">the <i>hem</i></a>.<br>Next line.</p>\
         <ul><li>needle<li>thread <code>40 w`t</code><ol><li>red</li><li>blue</li></ol></ul>\
         <blockquote><p>Measure twice.</p><p>Cut once.</p></blockquote>\
         <pre><code class=x>let a = 1;\n  // <b>kept</b>\n</code></pre>\
         <table><tr><th>name<th>length</tr><tr><td>hem<td>12 | 13</table>\
         <p><img src=\"/a.png\" alt=\"a coat\"><img src=x></p><hr><p>&copy; 2025 caf&eacute;</p></body></html>";
    let page = convert(html, &"https://example.com/docs/page".parse().unwrap());
    assert_eq!(page.title.as_deref(), Some("How to sew & mend"));
    assert_eq!(
        page.text,
        "# Seams\n\nA **strong** and *fine* seam, see [the *hem*](https://example.com/hem?x=1).\nNext line.\n\n\
         - needle\n- thread ``40 w`t``\n  1. red\n  2. blue\n\n> Measure twice.\n>\n> Cut once.\n\n\
         ```\nlet a = 1;\n  // kept\n```\n\n| name | length |\n| --- | --- |\n| hem | 12 \\| 13 |\n\n\
         ![a coat](https://example.com/a.png)\n\n---\n\n© 2025 café\n"
    );
}

#[test]
fn links_that_lead_nowhere_are_text() {
    for (html, text) in [
        ("<a href='#top'>up</a>", "up\n"),
        ("<a href='javascript:alert(1)'>run</a>", "run\n"),
        ("<a href='data:text/html,x'>data</a>", "data\n"),
        ("<a>none</a>", "none\n"),
        ("<a href='/x'> </a>after", "after\n"),
        ("<a href='/a(b)'>c</a>", "[c](https://example.com/a%28b%29)\n"),
        ("<base href='https://other.test/d/'><a href='e'>f</a>", "[f](https://other.test/d/e)\n"),
        ("<a href='/x'><h3>Title</h3><p>More</p></a>", "[Title More](https://example.com/x)\n"),
        ("<h2><a href='/x'>Part</a></h2>", "## [Part](https://example.com/x)\n"),
        ("one<b> two </b>three", "one **two** three\n"),
    ] {
        assert_eq!(markdown(html), text, "{html}");
    }
}

#[test]
fn tags_that_do_not_match_are_survived() {
    for (html, text) in [
        ("</p></ul></td></a></b>text", "text\n"),
        ("<b>open", "**open**\n"),
        ("<b><p>one</p></b>", "one\n"),
        ("<li>item", "- item\n"),
        ("<ul><li><p>a</p></li></ul>b", "- a\n\nb\n"),
        ("<td>cell", "cell\n"),
        ("<table><tr><td>only</td></tr></table>after", "only\n\nafter\n"),
        ("<pre>a\n\n```\nb</pre>", "````\na\n\n```\nb\n````\n"),
        ("<pre class='language-rust'>x</pre>", "```rust\nx\n```\n"),
        ("<blockquote><pre>a\nb</pre></blockquote>", "> ```\n> a\n> b\n> ```\n"),
        ("<svg><title>no</title><text>no</text></svg>yes", "yes\n"),
        ("<p>a<p>b", "a\n\nb\n"),
        ("", ""),
        ("<", "<\n"),
        ("<!-- x --><![CDATA[y]]>z", "z\n"),
    ] {
        assert_eq!(markdown(html), text, "{html}");
    }
}

#[test]
fn depth_and_length_are_limited() {
    for tag in ["div", "blockquote", "ul><li", "table><tr><td", "b", "a href=x", "pre"] {
        let deep = format!("<{tag}>").repeat(60_000) + "deep";
        let text = markdown(&deep);
        assert!(text.contains("deep"), "{tag}");
        assert!(text.len() < 1 << 20, "{tag}: {}", text.len());
    }
    let long = "<blockquote>".repeat(12) + &"<p>a</p>".repeat(400_000);
    let page = convert(&long, &"https://example.com/".parse().unwrap());
    assert!(page.is_cut && page.text.len() < 5 << 20, "{}", page.text.len());
}
