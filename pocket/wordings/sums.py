"""Wordings: sums."""

FRAMES = (
    "{what's|what is|whats|how much is|how much makes|calculate|compute|work out|tell me|give me|find|solve|evaluate|figure out|determine|reckon|get|do|count up} $sum[ {please|exactly|altogether|for me|in the shell|with python}]",
    "$sum",
    "$sum{ =| is| equals| = ?|, how much is that|, what is that| makes what| gives| comes to|, please|: how much| - how much is it|, do the maths}",
    "{I need|please do|do the sum|quick sum|a little sum|maths|math question|calculate this|do the math|sum|a sum for you|arithmetic|compute|calculator}: $sum",
    "{what do I get for|what do you get for|what's the result of|what is the value of|what's the answer to|what comes out of|what does one get for|what would be} $sum",
    "{can you|could you|would you} {{work out|compute|figure out|calculate|tell me} what $sum {is|makes|comes to}|{work out|compute|figure out|calculate|tell me|do} $sum}",
    "{I need|give me|I want|I'd like|find|get me} {the result|the value|the answer|the number|the figure} {of|for} $sum",
    "{I need to know|do you know|can you say|tell me|say|I wonder|I want to know} {what|how much} $sum {is|makes|gives|comes to|would be}",
    "{how much|what} {does|do|would|will|might} $sum {make|come to|give|be|amount to|equal}",
    "{use python|use bash|use the shell|take the calculator|with your calculator} {and work out|to compute|to calculate|to find|for} $sum",
    "{if I take|when I take|suppose I have|let's say|take} $sum{, what is it|, what do I get|, how much is it|, what comes out}",
    "$sum{ = what| makes how much| equals what| = x, what is x| - result|, the result please| and the answer is|, go|, thanks| = ...| is equal to|, can you do that|, quick}",
    "{I get confused|I'm bad at maths|my head hurts|no calculator here|I can't do this in my head|my calculator died|I'm too lazy to count|I never learned sums|batteries are dead}{,|:| -} {what's|what is|how much is} $sum",
    "what {does|would} $sum {amount to|come out as|work out to|result in|evaluate to|turn out to be|yield}",
    "{how about|what about|and what about|and|next one:|now try|another one:|same for} $sum",
    "{wondering|curious|unsure|not sure} {what|how much} $sum {is|makes|comes to}",
    "{the answer to|the result of|the value of|result for|answer for} $sum{ please| is| would be|, please|}",
    "{calc|calc:|eval|compute:|calculator,|python,|=|bc:|maths:|print} $sum",
    "{my teacher|my kid|my wife|a customer|the homework|my daughter|the exercise|somebody} {asks|asked|wants to know|would like to know} {what|how much} $sum {is|makes|comes to}",
    "{help me|let's|let us|I want to|I'd like to|I'm trying to} {calculate|compute|work out|figure out|find} $sum",
    "{just the number|only the result|exact value|numbers only|short answer}{,| please,}: $sum",
    "{solve|evaluate|work out|do} {this|the following|this exercise|this one|this little sum}{:| -} $sum",
    "{what number|which number|what figure|which value} {is|do I get from|comes out of|results from|equals} $sum",
    "{hey calculator|math time|dear calculator|human calculator|a little arithmetic}{,|:} $sum",
    "{suppose|imagine|assume} I {compute|calculate|work out|have} $sum{, what is it|, what do I get|, how much is that|, what comes out}",
    "{can you|could you} {do|manage|handle|solve|crack} {this sum|this one|a sum|this calculation|maths}: $sum",
    "{how would you|how do I} {work out|compute|calculate} $sum",
    "{double-check for me|check my homework|verify}{:| -} {what is|how much is} $sum",
    "$sum{??| ??| plsss|, quick pls|, ty| rn| lol| tho?}",
    "{yo|hey|ok|so|um|uh|oi}{,|} {whats|wats|what's|how much's} $sum",
    "{cant do|can't work out|cannot do|can't manage} $sum {in my head|right now|without paper|today}{|, help|. what is it|, you do it|, so?}",
    "{gotta|need to|have to|must} {know|work out|figure out|find} $sum{| quick| rn| for work| for school| asap}",
    "{so if I|if I|when I} {have|do|type in|punch in} $sum{,|} {what is it|what comes out|what do I end up with|how much is it}",
    "{at the till|doing the bills|doing homework|filling in a form|doing the books|cooking}{,|:|..} $sum{?| is?| = ?| pls}",
    "$sum {equals|is|makes|gives}{?|..|...| ?}",
    "{please to calculate|how much make|what is result of|how much it makes|you can calculate|I want result of} $sum",
    "{My eyes are bad, what is|My pencil broke, how much is|Would you be so kind and work out|I should like to know, what is|Young man, what is} $sum",
    "{bet you can't do|bet you know|surely you can do|even you can do|now do} $sum{| lol| fast| for me|}",
    "{sanity check|quick check|for the invoice|for the spreadsheet|napkin maths|one liner}: $sum{| =| equals|?}",
    "{I get|I keep getting|she got|we both get} {a different number|something weird|nonsense|an odd result} for $sum{, you try|, what do you get|. What is it really|, what's right}",
    "{tell me real quick|quick one|lazy question|dumb question|maths q|easy one}{:|,|..} {what's |how much is |}$sum",
)
EXPRESSIONS = (
    (
        9,
        "$a + $b",
        "{$a + $b|$a+$b|$a plus $b|$a and $b {added|added up|summed|together|put together}|the sum of $a and $b|the total of $a and $b|$a added to $b|$a increased by $b|$a, and $b on top|add together $a and $b|$a more than $b|$b on top of $a|$a together with $b|$a & $b added|$a combined with $b|$a +$b|$a with $b added|$a with another $b|the result of adding $a and $b|$a plus another $b|$a, plus $b}",
    ),
    (
        9,
        "$a - $b",
        "{$a - $b|$a-$b|$a minus $b|$a less $b|the difference {of|between} $a and $b|$b {subtracted|taken|taken away|deducted} from $a|$a {reduced|decreased|lowered} by $b|$a take away $b|$a without $b|$a with $b {subtracted|removed|taken off|taken out|gone}|$b {off|removed from|away from} $a|$b less than $a|$b fewer than $a|$a diminished by $b|$a down by $b|the gap between $a and $b|the part of $a left after taking $b|the result of subtracting $b from $a|$a, minus $b|$a -$b|$a shortened by $b|$a once $b is gone}",
    ),
    (
        12,
        "$a * $b",
        "{$a * $b|$a*$b|$a x $b|$a times $b|$a multiplied {by|with} $b|the product of $a and $b|$a × $b|$a{x}$b|$a by $b, multiplied|$a lots of $b|$a groups of $b|$a sets of $b|$a rows of $b|$b taken $a times|$a times as much as $b|$a and $b multiplied|$a and $b multiplied together|$a by $b|$a·$b|the result of multiplying $a and $b|$a packs of $b|$a X $b|$a copies of $b|$a $b times over|$a piles of $b}",
    ),
    (
        9,
        "$a / $b",
        "{$a / $b|$a/$b|$a divided by $b|$a over $b|$a ÷ $b|the quotient of $a and $b|$a split {by|into|in} $b {parts|pieces|}|$a shared by $b|the ratio of $a to $b|$a : $b|$a shared {among|between} $b|$a divided into $b {equal |}parts|$a spread over $b|one of $b equal parts of $a|the result of dividing $a by $b|$a distributed over $b|$a cut into $b|$a div by $b|the fraction $a/$b|$a per $b|$a split $b ways|$a dealt out to $b}",
    ),
    (
        5,
        "$a % $b",
        "{$a mod $b|$a modulo $b|$a % $b|the remainder {of|for} $a {divided by|by|over|/} $b|the remainder when {$a is divided by $b|dividing $a by $b}|what remains of $a after division by $b|the rest of $a divided by $b|the leftover of $a / $b|the {rest|remainder|leftover} when {$a is split into groups of $b|I divide $a by $b}|the remainder {after|from} dividing $a by $b|the part left {when|after} dividing $a by $b|$a%$b|mod($a, $b)|the modulus of $a and $b|the integer remainder of $a over $b|the residue of $a modulo $b|the amount left over when $b goes into $a|the rest when $b divides $a|$a reduced modulo $b}",
    ),
    (
        5,
        "$a ** $k",
        "{$a to the power of $k|$a^$k|$a ** $k|$a**$k|$a to the power $k|$a to the $k|$a raised to $k|$a raised to the power of $k|the $k-th power of $a|$a to the $k-th power|$a ^ $k|$a with exponent $k|$a with the exponent $k|$a exponent $k|pow($a, $k)|$a power $k|$a exponentiated by $k|$a up to the power of $k|the number $a to the power $k|$a in the $k-th power|the result of raising $a to $k}",
    ),
    (
        3,
        "$a ** 2",
        "{the square of $a|$a squared|$a square|$a to the second power|$a²|$a by itself|$a times itself|$a^2|the second power of $a|$a multiplied by itself|$a to the power of two|$a raised to two|the area of a square with side $a|square of $a|the number $a squared}",
    ),
    (
        3,
        "$a ** 3",
        "{the cube of $a|$a cubed|$a to the third power|$a³|the third power of $a|$a^3|$a to the power of three|the volume of a cube with side $a|$a raised to three|cube of $a|the number $a cubed}",
    ),
    (
        2,
        "$a ** 0.5",
        "{the square root of $a|the root of $a|sqrt $a|sqrt($a)|the sqrt of $a|√$a|the number whose square is $a|the side of a square with area $a|$a to the power of a half|the second root of $a|square root of $a|squareroot of $a|sqrt of $a|the positive root of $a|the 2nd root of $a|the length of a square of area $a}",
    ),
    (
        10,
        "$p * $b / 100",
        "{{$p%|$p %|$p percent|$p per cent|$p pct|$p percent|$p%} of $b|a $p percent share of $b|$p hundredths of $b|a $p% {cut|slice|portion|part} of $b|$p percent out of $b|$b times $p percent|{a|the} tip of $p{%| percent} on $b|$p% {interest|tax|VAT|commission|duty} on $b|{a|the} {commission|fee|deposit|tax} of $p{%| percent} on $b|$p in every hundred of $b}",
    ),
    (
        3,
        "$b * (100 + $p) / 100",
        "{$b plus $p{%| percent}|$b {increased|raised|up} by $p{%| percent}|$b with $p{%| percent} {tax|VAT|tip|interest|service} {added|on top}|$b {and|plus} {a |}$p{%| percent} {tip|tax|surcharge}|$b {grown|gone up|risen|raised} by $p{%| percent}|$b marked up by $p{%| percent}|$b with a {markup|raise|surcharge} of $p{%| percent}|$b including $p{%| percent} {VAT|tax|tip}|$p{%| percent} on top of $b|$b, $p percent more|$p{%| percent} more than $b|$b after a {rise|raise|pay rise|increase} of $p{%| percent}|$b + $p%}",
    ),
    (
        3,
        "$b * (100 - $p) / 100",
        "{$b minus $p{%| percent}|$p{%| percent} off $b|$b {reduced|lowered|down|cut} by $p{%| percent}|$b with {a |}$p{%| percent} {discount|off|rebate}|$b less $p{%| percent}|$b after a {drop|cut|discount|decrease|fall} of $p{%| percent}|$p{%| percent} less than $b|$b marked down by $p{%| percent}|$b in a $p{%| percent} sale|$b {shrunk|fallen|cheaper|dropped} by $p{%| percent}|$b with $p{%| percent} taken off|$b, $p percent less|$b with a voucher for $p{%| percent} off|$b - $p%}",
    ),
    (
        2,
        "$a / 2",
        "{half of $a|half $a|one half of $a|the half of $a|$a halved|$a split in two|$a cut in half|$a shared by two|half as much as $a|half the number $a|$a in two equal parts|0.5 of $a|$a split between the two of us}",
    ),
    (
        1,
        "$a / 3",
        "{a third of $a|one third of $a|the third part of $a|$a split in three|$a cut into thirds|one of three equal parts of $a|$a shared by three|1/3 of $a|a third part of $a|$a split three ways|a third of the number $a}",
    ),
    (
        1,
        "$a / 4",
        "{a quarter of $a|one quarter of $a|one fourth of $a|$a split in four|a fourth of $a|1/4 of $a|one of four equal parts of $a|$a quartered|the fourth part of $a|$a split four ways|half of half of $a|$a shared by four}",
    ),
    (
        1,
        "$a * 2",
        "{double $a|twice $a|the double of $a|$a doubled|the double amount of $a|$a two times over|$a taken twice|$a and the same again|twice as much as $a|double the number $a}",
    ),
    (
        1,
        "$a * 3",
        "{triple $a|thrice $a|$a tripled|$a three times over|the triple of $a|threefold $a|$a tripled up|treble $a|triple the number $a}",
    ),
    (
        1,
        "$a * 12",
        "{$a dozen|$a times a dozen|$a dozens|$a twelve times|a dozen times $a|$a years counted in months|$a monthly for a whole year|$a a month for a year}",
    ),
    (
        8,
        "$a + $b + $c",
        "{$a + $b + $c|$a+$b+$c|$a plus $b plus $c|the sum of $a, $b and $c|the total of $a, $b and $c|$a, $b and $c {added up|together|summed}|$a and $b and $c|$a + $b and $c|$a and $b plus $c|$a, $b, $c {added|summed up|in total|all together|combined}|$a added to $b and $c|the grand total of $a, $b and $c|the three numbers $a, $b and $c added|$a with $b and $c added|adding $a, $b and $c|$a, plus $b, plus $c|$a then $b then $c added}",
    ),
    (
        2,
        "$a + $b + $c + $d",
        "{$a + $b + $c + $d|$a+$b+$c+$d|the sum of $a, $b, $c and $d|$a plus $b plus $c plus $d|the total of $a, $b, $c and $d|$a, $b, $c and $d {added|added up|together|summed|combined|in all}|$a and $b and $c and $d|all of $a, $b, $c, $d added together|adding $a, $b, $c and $d|the four numbers $a, $b, $c and $d added}",
    ),
    (
        3,
        "$a - $b - $c",
        "{$a - $b - $c|$a-$b-$c|$a minus $b minus $c|$a less $b less $c|$a with $b and $c {taken off|subtracted|removed}|$a without $b and $c|$b and then $c taken from $a|$a take away $b take away $c|$a reduced by $b and by $c|$a after losing $b and then $c|$b and $c subtracted from $a|$a minus $b, minus another $c}",
    ),
    (
        5,
        "$a * $b * $c",
        "{$a * $b * $c|$a*$b*$c|$a x $b x $c|$a times $b times $c|$a by $b by $c|the product of $a, $b and $c|$a, $b and $c multiplied[ together]|$a × $b × $c|$a multiplied by $b and by $c|the volume of a box $a by $b by $c|$a·$b·$c|$a times $b, times $c again}",
    ),
    (
        3,
        "$a * $b + $c",
        "{$a * $b + $c|$a*$b+$c|$a times $b plus $c|$a x $b + $c|$a times $b and $c more|$a multiplied by $b, plus $c|$c added to $a times $b|the product of $a and $b plus $c|$a lots of $b and another $c|$a × $b + $c|$a times $b with $c added|$c more than $a times $b|$a rows of $b plus $c extra}",
    ),
    (
        2,
        "$a * $b - $c",
        "{$a * $b - $c|$a*$b-$c|$a times $b minus $c|$a x $b - $c|$a multiplied by $b, minus $c|$c taken from $a times $b|the product of $a and $b minus $c|$a × $b - $c|$a times $b less $c|$c less than $a times $b|$a lots of $b without $c|$a packs of $b minus $c broken ones}",
    ),
    (
        2,
        "$a + $b * $c",
        "{$a + $b * $c|$a+$b*$c|$a plus $b times $c|$a + $b x $c|$a + $b × $c|$a plus $b multiplied by $c|$a plus the product of $b and $c|$a and then $b times $c on top|$a increased by $b times $c|$a and another $b times $c}",
    ),
    (
        2,
        "$a + $b - $c",
        "{$a + $b - $c|$a+$b-$c|$a plus $b minus $c|the sum of $a and $b minus $c|$a and $b together, less $c|$a plus $b take away $c|$a added to $b, minus $c|$a plus $b without $c|$c off the sum of $a and $b|$a with $b added and $c removed}",
    ),
    (
        3,
        "($a + $b) * $c",
        "{($a + $b) * $c|($a+$b)*$c|the sum of $a and $b{,|} times $c|($a plus $b) times $c|$c times the sum of $a and $b|the total of $a and $b multiplied by $c|$a and $b added, then times $c|($a + $b) x $c|$a plus $b, all times $c|$a plus $b in brackets times $c|$c lots of $a and $b together|($a + $b) × $c}",
    ),
    (
        2,
        "($a - $b) * $c",
        "{($a - $b) * $c|($a-$b)*$c|($a minus $b) times $c|$c times the difference of $a and $b|the difference {of|between} $a and $b{,|} {times|multiplied by} $c|$a minus $b, all times $c|$a minus $b in brackets times $c|($a - $b) x $c|$b taken from $a, then times $c|($a - $b) × $c}",
    ),
    (
        2,
        "($a + $b) / $c",
        "{($a + $b) / $c|($a+$b)/$c|the sum of $a and $b{,|} divided by $c|$a plus $b, all divided by $c|$a and $b together shared by $c|$a and $b added, then divided by $c|($a + $b) over $c|($a plus $b) divided by $c|the total of $a and $b split by $c|$a plus $b in brackets over $c}",
    ),
    (
        2,
        "($a + $b) / 2",
        "{the average of $a and $b|the mean of $a and $b|the middle between $a and $b|the mean value of $a and $b|the average of the two numbers $a and $b|halfway between $a and $b|the midpoint {of|between} $a and $b|$a and $b on average|the number in the middle of $a and $b|half of the sum of $a and $b|avg of $a and $b|the arithmetic mean of $a and $b}",
    ),
    (
        2,
        "($a + $b + $c) / 3",
        "{the average of $a, $b and $c|the mean of $a, $b and $c|the mean value of $a, $b and $c|$a, $b and $c on average|the average of the three numbers $a, $b and $c|a third of the sum of $a, $b and $c|avg of $a, $b and $c|the arithmetic mean of $a, $b and $c|the average score of $a, $b, $c}",
    ),
    (
        1,
        "$a / 10",
        "{a tenth of $a|one tenth of $a|the tenth part of $a|1/10 of $a|$a split ten ways}",
    ),
    (
        1,
        "$a / 5",
        "{a fifth of $a|one fifth of $a|the fifth part of $a|1/5 of $a|$a split five ways}",
    ),
    (
        1,
        "$a * 3 / 4",
        "{three quarters of $a|3/4 of $a|three fourths of $a|three quarters out of $a}",
    ),
    (1, "$a * 2 / 3", "{two thirds of $a|2/3 of $a|two thirds out of $a}"),
    (1, "$a * 4", "{quadruple $a|$a quadrupled|the quadruple of $a|fourfold $a}"),
    (
        2,
        "($a - $b) / $c",
        "{($a - $b) / $c|($a-$b)/$c|the difference {of|between} $a and $b{,|} divided by $c|$a minus $b, all divided by $c|$b taken from $a, then divided by $c}",
    ),
    (
        2,
        "$a / $b + $c",
        "{$a / $b + $c|$a/$b+$c|$a divided by $b{,|} plus $c|$c added to $a over $b|$a over $b, plus $c}",
    ),
    (
        2,
        "$a / $b - $c",
        "{$a / $b - $c|$a/$b-$c|$a divided by $b{,|} minus $c|$c taken from $a over $b|$a over $b, less $c}",
    ),
    (
        2,
        "$a * $b / $c",
        "{$a * $b / $c|$a*$b/$c|$a times $b divided by $c|$a x $b / $c|the product of $a and $b{,|} divided by $c}",
    ),
    (
        4,
        "$a + $b",
        "{$a and $b {all in|together|in all|summed}|$b more on top of $a|$a with $b more|$a plus the other $b|$a, $b, {summed|both together|added up}|$a up by $b|$a and then $b more|$a + another $b}",
    ),
    (
        4,
        "$a - $b",
        "{$b from $a|$a take $b|$b short of $a|$a with $b {knocked off|shaved off|docked|spent|lost}|$a if $b {goes|drops out|is spent}|$a minus the $b|$a but $b {less|fewer}|$a after {losing|spending|paying} $b}",
    ),
    (
        4,
        "$a * $b",
        "{$a by $b|$a at $b {each|apiece|a pop|a time|per unit}|$a {pcs|pieces|units|items} at $b|$a, $b times|$a portions of $b|$b for each of $a|$a of them at $b|$a shifts of $b}",
    ),
    (
        4,
        "$a / $b",
        "{$a {split|shared|divided} {between|among|for} $b {people|of us|friends}|$a in $b equal {parts|pieces|shares|slices|chunks}|$a {cut|sliced|chopped} into $b {parts|equal bits|slices}|$a / $b {each|per person|a head}|each share if $a is split by $b}",
    ),
    (
        3,
        "$a % $b",
        "{remainder of $a {by|divided by|over|/} $b|the {leftover|rest|remainder} {of|from} $a in {groups|packs|lots|teams} of $b|$a / $b, {just|only} the {remainder|rest|leftover}|$a over $b, remainder only|the odd ones of $a in rows of $b|rest of $a by $b}",
    ),
    (
        3,
        "$a ** 2",
        "{$a sq|$a x itself|$a * itself|$a × itself|sq of $a|$a, squared|$a to the 2nd|$a to the power 2|$a ^ 2|$a ** 2}",
    ),
    (
        2,
        "$a ** 3",
        "{$a to the 3rd|$a ^ 3|$a ** 3|$a x itself x itself|$a, cubed|$a * itself * itself|$a to the power 3|$a cube}",
    ),
    (
        4,
        "$p * $b / 100",
        "{{tax|tip|fee|commission|cashback|interest} {of|at} $p{%| percent} on $b|$p{%| percent} {tip|vat|cashback|commission|interest} on $b|{the|a} $p{%| percent} {slice|cut|bit} of $b|$p out of every 100 of $b|$p% out of the $b}",
    ),
    (
        3,
        "$b * (100 + $p) / 100",
        "{$b + $p{%| percent| pct}|$b {with|incl.|including} $p{%| percent} {tax|vat|tip|service}{| on it| on top}|$b, $p{%| percent} {up|higher|dearer}|$b {bumped|hiked|pushed} up by $p{%| percent}|$b and $p{%| percent} more on it}",
    ),
    (
        3,
        "$b * (100 - $p) / 100",
        "{$b - $p{%| percent| pct}|$b at $p{%| percent} {off|discount}|$b with $p{%| percent} {knocked off|rebate|deducted}|$b, $p{%| percent} {down|lower|cheaper|off}|$p{%| percent} knocked off $b|the price after $p{%| percent} off $b}",
    ),
    (
        2,
        "$a / 2",
        "{half from $a|$a over 2|$a ÷ 2|$a / 2|$a divided by {2|two}|$a split {fifty-fifty|50/50|two ways|down the middle|evenly in two}|one half from $a}",
    ),
    (
        3,
        "$a + $b + $c",
        "{$a plus $b and $c|$a and $b plus another $c|$a and then $b and then $c added|$a $b $c {added up|summed|in total}|$a with $b and another $c on top|$a + $b, + $c}",
    ),
    (
        2,
        "$a + $b + $c + $d",
        "{$a $b $c $d {added up|summed|in total}|$a and $b and $c and another $d|$a, $b, $c plus $d|$a plus $b, plus $c, plus $d|$a with $b, $c and $d on top}",
    ),
    (
        3,
        "$a * $b * $c",
        "{$a times $b and times $c|$a, $b and $c {all multiplied|times each other|multiplied out}|$a * $b times $c|$a X $b X $c|$a lots of $b times $c|$a x $b times $c}",
    ),
    (
        2,
        "$a - $b - $c",
        "{$a take $b take $c|$a minus $b and minus $c|$a minus both $b and $c|$b and $c {off|from} $a|$a after {paying|spending|losing} $b and $c|$a less $b and less $c}",
    ),
    (
        2,
        "$a / $b / $c",
        "{$a / $b / $c|$a/$b/$c|$a divided by $b{,|} {and |}then by $c|$a over $b over $c|$a divided by $b divided by $c|$a ÷ $b ÷ $c|$a split by $b and again by $c}",
    ),
    (
        2,
        "$a - $b + $c",
        "{$a - $b + $c|$a-$b+$c|$a minus $b plus $c|$a less $b, plus $c|$a take away $b, add $c|$a minus $b, then plus $c|$a with $b off and $c on}",
    ),
)
ORDERS = (
    (
        "$a + $b",
        "{add|put together|sum up|sum|total up|combine} $a and $b",
    ),
    (
        "$a + $b",
        "{add|put} $b {to|on top of} $a",
    ),
    (
        "$a - $b",
        "{subtract|take|take away|deduct|remove} $b from $a",
    ),
    (
        "$a - $b",
        "{reduce|lower|decrease|cut|diminish} $a by $b",
    ),
    (
        "$a * $b",
        "{multiply $a {by|with|and} $b|multiply the numbers $a and $b|multiply $a and $b together|take $a times $b}",
    ),
    (
        "$a * 2",
        "{double {the number |}$a|multiply $a by two|take $a twice}",
    ),
    (
        "$a / 2",
        "{halve {the number |}$a|cut $a in half|split $a in half|split $a in two|split $a evenly for two|divide $a between two people}",
    ),
    (
        "$a ** 2",
        "{square {the number |}$a|multiply $a by itself|take $a times itself|raise $a to the power of two}",
    ),
    (
        "$a - $b",
        "{{knock|shave|dock|trim} $b off $a|pull $b from $a|take $b away from $a}",
    ),
    (
        "$a + $b",
        "{chuck|stick|throw|pop} $b {on top of|onto} $a",
    ),
    (
        "$a * $b",
        "{times|multiply} $a by $b{ pls| for me|}",
    ),
    (
        "$a / $b",
        "{divvy|carve|chop|split} $a up {into $b {parts|shares|pieces}|between $b of us}",
    ),
    (
        "$a + $b + $c",
        "{add|total|sum|tot up} {these|the lot|all these}: {$a $b $c|$a, $b, $c|$a and $b and $c}",
    ),
    ("$a + $b", "{add|add up|tot up|total} {the numbers |}$a and $b{ for me|, please|}"),
    ("$a / $b", "{divide|split} {the number |}$a {by|into} $b{ for me|, please|}"),
    ("$a - $b", "{subtract|deduct|take} {the number |}$b from $a{ for me|, please|}"),
    ("$a * $b * $c", "multiply {the numbers |}$a, $b and $c{ together|, please|}"),
    ("$a ** $k", "raise {the number |}$a to the power {of |}$k{ for me|, please|}"),
)
STORIES = (
    (
        "$a * $b",
        "{I {buy|bought|need|sold|want|ordered}|we {buy|bought|need|sold|ordered}|$person {bought|sold|needs}} $a $nouns {at|for|costing|that cost|at a price of} $b[ $coins] {each|apiece|per piece|a piece}{, what do I pay|, how much is that|, what's the total|: total|. What does that cost|, what does it come to|. How much altogether}",
    ),
    (
        "$a * $b",
        "{what|how much} {do|would|will} $a $nouns {cost|come to|be} {at|for|if one costs|when each costs} $b[ $coins][ each| apiece]",
    ),
    (
        "$a * $b",
        "{$a|I have $a|there are $a|we have $a} {boxes|bags|rows|crates|packs|shelves|bottles|pages|trays|teams} {with|of|holding} $b $nouns{ each|, each| in each|}{, how many $nouns|, how many in all|: total|. How many altogether|, how many are there in total|, how many is that}",
    ),
    (
        "$a * $b",
        "{$b[ $coins] {a|per|every|each} {day{ for|,| over| during} $a days|week{ for|,| over| during} $a weeks|month{ for|,| over| during} $a months|year{ for|,| over| during} $a years}|$b[ $coins] {an|per|every|each} hour{ for|,| over| during} $a hours}{, how much is that|: how much|, what's the sum|. Total|, what does it make}",
    ),
    (
        "$a - $b",
        "{I had|there were|we had|we started with|I have|$person had} $a $things{ and|, then| and then|, but} {spent|lost|gave away|used|sold|paid|dropped|returned} $b{, how many are left|, what is left|, what remains|. How much is left|, how many remain|, what do I have now}",
    ),
    (
        "$a - $b",
        "how much {more|larger|bigger|longer|further} is $a than $b",
    ),
    (
        "$a + $b",
        "{I have|there are|we own|$person has} $a $things{ and|, then I|, and} {get|find|buy|receive|add|earn} $b more{, how many are there|, how many is that|, what's the total|. How many now|, how many in all}",
    ),
    (
        "$a + $b",
        "{$a[ $coins] for {the|a|my} $noun {and|plus} $b for {the|a|my} $other}{, how much together|, total|: total|, what did I spend|. What's the sum|, what do I pay in all}",
    ),
    (
        "$a + $b + $c",
        "{I spent|I paid|we collected|add up|I drove|I ran|we counted} $a, $b and $c[ $coins]{, how much in all|, total|, what's the sum|. How much together|, what is that together}",
    ),
    (
        "$a / $b",
        "{split|share|divide|spread} $a[ $things] {among|between|over|across|by|equally among} $b {people|friends|days|children|of us|boxes|teams|months|weeks}[{, how much each|, what does each get|: how many each}]",
    ),
    (
        "$a / $b",
        "{$a $things {for|among|shared by|between} $b {people|friends|days|children|teams|months}}{, how many each|, what does each get|, how much is that each|: share|. How many for each}",
    ),
    ("$a / $b", "how {often|many times} {does|will|would} $b {go into|fit into|fit in} $a"),
    (
        "$a * $b",
        "{if|when|say} {one|a single|each} $noun {costs $b[ $coins], {what|how much} {do|would|will} $a {of them |}cost|weighs $b, how much do $a of them weigh|holds $b, how much do $a of them hold|needs $b, how much do $a of them need}",
    ),
    (
        "$a * $b",
        "{a|my|the} {room|garden|field|wall|floor|carpet|screen|table} is $a by $b[ metres]{, what's the area|, how big is it|. What is its area|: area|, how many square metres}",
    ),
    (
        "$a * $b",
        "{I|we|$person} {{earned|saved|paid|spent|got} $b[ $coins]|walked $b miles|read $b pages|drove $b km|cycled $b km} {every time|at a go|each time|per turn}, $a times {in a row|over|in all}{, how much is that|, what's the total|, how much altogether|: total|. What does that make|. How much is it in all|, what do I get}",
    ),
    (
        "$a * $b",
        "{a|one|my|the} {car|train|bike|plane|horse} {does|goes|travels at|makes} $b {km|miles} {an|per|each} hour{, how far in $a hours|. How far does it get in $a hours|, what distance in $a hours|: distance after $a hours}",
    ),
    (
        "$a * $b",
        "{there are|we have|I see|I count} $a {tables|classes|rooms|cars|floors|teams|baskets|cages} and {each has|each holds|every one has|all of them have} $b {chairs|children|$nouns|people|windows}{, how many in all|, how many altogether|. What's the total|. How many is that}",
    ),
    (
        "$a * $b",
        "{every|each} {child|guest|friend|player|worker} {gets|needs|eats|brings|receives} $b $nouns{, how many for $a of them|, what do $a of them need|. How many do I need for $a|. There are $a of them, how many in all}",
    ),
    (
        "$a * $b + $c",
        "{I buy|I bought|we ordered|$person bought} $a $nouns {at|for} $b each {and|plus} {a|one} $other for $c{, how much is that|, what's the total|, how much altogether|: total|. What does that make|. How much is it in all|, what do I get}",
    ),
    (
        "$a * $b + $c",
        "{a|the} {taxi|plumber|gym|hotel|rental} {costs|charges|takes|asks} $c {at the start|as a fee|to begin with|once}{ and $b {per hour|an hour|for every hour}, {what about|how much for|what is it for|what do I pay for} $a hours| and $b {per day|a day|for every day}, {how much for|what do I pay for} $a days| and $b {per mile|a mile}, {how much for|what do I pay for} $a miles}",
    ),
    (
        "$a - $b * $c",
        "{I had|I have|we started with|I took} $a $coins and {bought|paid for|ordered} $b $nouns {at|for} $c each{, what change do I get|, what's left|. How much is left|. What remains|, how much do I have now}",
    ),
    (
        "$a - $b",
        "{I pay|I paid|$person pays|I gave} $a for {a|the|my} $noun {that costs|worth|costing|priced at} $b{, how much change|, what's the change|. What comes back|: change}",
    ),
    (
        "$a - $b",
        "{I need|we need|the goal is|my target is} $a $things {and|but} {I have|we have|so far there are|I've saved|we've got} $b{, how many are missing|, how much more do I need|. What's missing|. How much to go|, what is still needed}",
    ),
    (
        "$a - $b",
        "{how far is it from $b to $a|how much do I need to get from $b to $a|what must I add to $b to get $a|how much is missing from $b to $a|how far short of $a is $b}",
    ),
    (
        "$a - $b",
        "{the|my|a} {book has $a pages|film has $a minutes|road is $a miles long|race is $a kilometres long|list has $a items} and {I did|I've done|I'm at|I have finished} $b{, how many left|, how much is left|. What remains|, how many to go}",
    ),
    (
        "$a - $b",
        "{$person has|I own|the shop has} $a $things, {$b fewer|$b less} {are with|belong to} my {brother|sister|neighbour}{, how many is that|, how many are those|. How many}",
    ),
    (
        "$a - $b",
        "{a|the|my} $noun {cost|was} $a[ $coins] {last year|before|yesterday} and {now costs|is now|is down to} $b{, what's the difference|, how much did it fall|. How much cheaper is it|, how much do I save}",
    ),
    (
        "$a - $b",
        "{someone|he|she|grandma|a man} {was born in $b|came into the world in $b}{, how old in $a|, what age in $a|. How old in $a}",
    ),
    (
        "$a - $b - $c",
        "{I had|there were|we had|$person had} $a $things, {lost|spent|gave away|sold|ate} $b{ and| and then|, then} {lost|spent|gave away|sold|dropped} $c{ more|}{, how many are left|, what's left|, what remains|. How many remain|. What is left over|, how much do I still have}",
    ),
    (
        "$a + $b - $c",
        "{a bus has|there are|the train had|the shop had} $a {people|passengers|visitors}, $b {get in|come in|more arrive|join} and $c {leave|get off|go home|get out}{, how many are there now|, how many are on it|. How many now|, what's the number now}",
    ),
    (
        "$a + $b - $c",
        "{I have|I had|my account has|the till has} $a $coins, then {I get|we receive|there come in} $b and {I spend|we pay|there go out} $c{, what do I have|, how much now|. What's the balance|. How much is there}",
    ),
    (
        "$a + $b",
        "{my|our|the} {first|morning|old} {run|trip|bill|walk|score|box} was $a{ and| and then|,} the {second|next|other} {one |}$b{, how much is that|, what's the total|, how much altogether|: total|. What does that make|. How much is it in all|, what do I get}",
    ),
    (
        "$a + $b",
        "{$person|my brother|the first team} has $a $things and {I have|the other has|my sister has|we have} $b{, how many together|, how many do we have|. How many in all|: together}",
    ),
    (
        "$a + $b",
        "{there are|I see|the class has|we have} $a {boys|men|cats|red ones|cars} and $b {girls|women|dogs|blue ones|bikes}{, how many in total|, how many together|. How many in all|, how many is that|: total}",
    ),
    (
        "$a + $b",
        "{I am|$person is|my sister is} $a years old{, how old in $b years|. How old in $b years|, what age will it be in $b years|, what age $b years from now}",
    ),
    (
        "$a + $b",
        "{which|what} number is {$b more than $a|$b bigger than $a|$b larger than $a|$b above $a|$b after $a}",
    ),
    (
        "$a - $b",
        "{which|what} number is {$b less than $a|$b smaller than $a|$b below $a|$b under $a|$b before $a}",
    ),
    (
        "$a + $b + $c",
        "{I bought|we had|it was|on the bill there is} {a|the} $noun for $a, {a|the} $other for $b and {something|tea|a drink|bread} for $c{, how much is that|, what's the total|, how much altogether|: total|. What does that make|. How much is it in all|, what do I get}",
    ),
    (
        "$a + $b + $c",
        "{monday $a, tuesday $b, wednesday $c|first day $a, second day $b, third day $c|in May $a, in June $b, in July $c|round one $a, round two $b, round three $c}{, how much is that|, what's the total|, how much altogether|: total|. What does that make|. How much is it in all|, what do I get}",
    ),
    (
        "$a + $b + $c + $d",
        "{the bill says|I spent|my scores are|the four walls are|add|sum up|tally} $a, $b, $c and $d{, how much in all|, what's the total|: total|. How much is that together|, what does it come to}",
    ),
    (
        "($a + $b) / 2",
        "{I got|my marks are|I scored|we measured|the readings were} $a and $b{, what's the average|, what is my average|: average|. What's the mean|, what is it on average}",
    ),
    (
        "($a + $b + $c) / 3",
        "{I got|my marks are|I scored|we measured|three days gave} $a, $b and $c{, what's the average|, what is my average|: mean|. What is the mean|, how much on average}",
    ),
    (
        "($a + $b) / $c",
        "{$c of us|we are $c and|the $c of us} {pay|share|split} a bill of $a and {another of|a second of|one of} $b{, how much each|, what does each pay|. How much per person}",
    ),
    (
        "$a / $b",
        "{divide|split} $a by $b",
    ),
    (
        "$a / $b",
        "{the|a|our} {bill|dinner|taxi|rent|present|trip} {is|was|comes to|costs} $a[ $coins] and {we are $b[ people]|there are $b {of us|people|friends}}{, how much each|, what does each pay|, how much per head|. What's my share|. Per person}",
    ),
    (
        "$a / $b",
        "{$b $nouns cost|for $b $nouns I paid|a pack of $b $nouns costs|$b $nouns came to} $a[ $coins]{, what does one cost|, how much is one|, what's the price of one|. How much each|, price per piece}",
    ),
    (
        "$a / $b",
        "{I have|we have|I've got|they gave me} $a $nouns and {I pack|I put|I arrange} them in {boxes of $b{, how many boxes|. How many boxes}|groups of $b{, how many groups|. How many groups}|rows of $b{, how many rows|. How many rows}}",
    ),
    (
        "$a / $b",
        "{I drove|we drove|the train goes|$person rode|a car travels} $a {km|miles|kilometres} in $b hours{, how fast|, what's the speed|, what speed was that|. How many per hour|, how fast on average}",
    ),
    (
        "$a / $b",
        "{I earn|I make|$person earns|a job pays|I got} $a[ $coins] {for|in} $b {hours{, how much per hour|, what's my hourly rate}|days{, how much a day|, what is that per day}|months{, how much a month|, what is that per month}}",
    ),
    (
        "$a / $b",
        "{a book has|I must read|I have to do|there are} $a {pages|exercises|tasks} and {I do|I read|I manage|we do} $b {a|per|each} day{, how many days|, how long does it take|. How many days do I need|, how many days is that}",
    ),
    (
        "$a / $b",
        "{what is|what's|how much is} {one|a single} {share|part|portion} {if|when} $a {is|are} {split|divided|shared} {among|between|by} $b",
    ),
    (
        "$a % $b",
        "{I have|I've got|I take} $a $nouns and {put|pack} $b in each {box|bag|row}{, how many are left over|, what's left over|. How many don't fit|, how many remain at the end}",
    ),
    (
        "$p * $b / 100",
        "{$p% of|$p percent of} {the |our |}{$b {people|guests|pupils|members} {are late|came|said yes|are ill}|$b $nouns {are red|are broken|are mine|were sold}}{, how many is that|, how many are those|. How many|: number}",
    ),
    (
        "$p * $b / 100",
        "{the bill|dinner|lunch|the taxi|my meal} {is|was} $b[ $coins]{, how much is a tip of $p{%| percent}|, what's $p{%| percent} of that|. How big is a tip of $p{%| percent}}",
    ),
    (
        "$p * $b / 100",
        "{interest|tax|a commission|a fee|VAT} {is|of} $p{%| percent}, {how much|what} {do I pay|is that|will it be} {on|for} $b[ $coins]",
    ),
    (
        "$b * (100 - $p) / 100",
        "{a|the|my} $noun {costs|is|was} $b[ $coins] {and|but} {there is|I get|today it's} $p{%| percent} off{, what do I pay|, what's the price|. What does it cost now|: new price|, how much is it now}",
    ),
    (
        "$b * (100 - $p) / 100",
        "{what's|what is|how much is} the {sale|new|final|reduced} price {of|for} {a|the} $noun {at|of} $b[ $coins] {with $p{%| percent} off|after a $p{%| percent} discount|after a reduction of $p{%| percent}}",
    ),
    (
        "$b * (100 + $p) / 100",
        "{my|the|our} {rent|salary|price|fee|bill|pension} {is|was} $b[ $coins] and {goes up|rises|grows|increases} by $p{%| percent}{, what is it then|, what's the new one|. How much is it now|: new amount|, how much will it be}",
    ),
    (
        "$b * (100 + $p) / 100",
        "{a|the} $noun {costs|is} $b[ $coins] {before|without|plus|excluding} {$p{%| percent} {VAT|tax|service}}{, how much with it|, what do I pay in all|. Total with tax|: total|, what's the full price}",
    ),
    (
        "$a ** 2",
        "{a|my|the} square {room|garden|field|tile|box} has {a side of|sides of|a length of} $a{, what's its area|, how big is it|. Area please|: area}",
    ),
    (
        "$a ** 3",
        "{a|my|the} {cube|cubic box|dice|cube of ice} has {a side of|edges of|sides of} $a{, what's its volume|, how big is it inside|. What volume is that|: volume}",
    ),
    (
        "$a * $b * $c",
        "{a|my|the} {box|room|tank|pool|parcel|crate} {is|measures} $a by $b by $c{, what's the volume|, how much fits in|. What is its volume|: volume}",
    ),
    (
        "$a * $b * $c",
        "{$a shelves|$a houses|$a trucks} with $b {boxes|crates|bags} {each |}and $c $nouns in {every one|each of those}{, how many in all|, how many $nouns|. What's the total|. How many altogether}",
    ),
    (
        "2 * ($a + $b)",
        "{the perimeter of|what is the perimeter of|how long is the fence around|what is the way around} a {garden|field|rectangle|yard|park} {of|that is|measuring} $a by $b",
    ),
)
DOWN = "{how many $small {are there |are |}in $count|$count in $small|{turn|convert|express} $count {to|into|in} $small|$count is how many $small|how many $small {make|are} $count|how many $small do $count make|number of $small in $count|what is $count in $small|what's $count {measured|expressed|written|counted} in $small|$count {to|as|into|=} $small|how many $small {fit into|pass in|go by in|does one have in|do I get from|are contained in|can I count in} $count|how long is $count in $small|how long in $small is $count|give me $count in $small|$count makes how many $small|{change|translate|transform|rewrite} $count {to|into} $small|the number of $small {in|that make up|contained in} $count|$count - how many $small|I have $count, how many $small is that|if it takes $count, how many $small is it|$count{,|:} and in $small{|, how many}|count the $small in $count}"
UP = "{how many $large {are|is|make} $a $small|$a $small in $large|{turn|convert|express} $a $small {to|into|in} $large|$a $small is how many $large|what is $a $small in $large|$a $small {measured|expressed|counted|written} in $large|$a $small {to|as|into|=} $large|how long is $a $small in $large|how long in $large is $a $small|give me $a $small in $large|$a $small makes how many $large|{change|translate|transform|rewrite} $a $small {to|into} $large|the number of $large in $a $small|$a $small - how many $large|how many $large {do I get from|do you get out of|does one make of|fit into|go into} $a $small|it took $a $small, how many $large is that|I have $a $small, what is that in $large|$a $small{,|:} and in $large{|, how many}|count $a $small in $large}"
